// Sequential tree-reweighted message passing (Kolmogorov: Convergent tree-reweighted message passing for energy minimization,
// PAMI 2006) on a graph with cycles: a bound on the best score that never rises but by rounding, and labellings that come close to it.
//
// The bound is that of a split of the scores over monotonic chains; its lowest value is the value of the linear relaxation
// over pairs of labels, or in rare cases a little more, as coordinate descent may get stuck (at a weak tree agreement). Where the bound
// meets the score of a labelling found on the way, that labelling is best.
//
// Before the passes, parallel edges are added up (links.hpp) and leaves are eliminated (leaves.hpp): forests are solved by that
// alone. After 20 iterations, 80, 320 and so on, and at the end, labellings are made better by moves over forests (forest_moves.hpp) and, in runs of
// more than 10, by expansion moves (expansion.hpp). Nodes are visited in the order they have, or in the one given: on proteins, random orders and orders by breadth, degree
// or labels reached the same bound in about as many iterations. Messages stay from one run to the next: after small changes of the scores few iterations are needed.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "inference/forest_moves.hpp"
#include "inference/fusion.hpp"
#include "inference/leaves.hpp"
#include "inference/links.hpp"
#include "inference/message_passes.hpp"
#include "inference/ordered_graph.hpp"
#include "inference/pairwise.hpp"
#include "inference/search.hpp"

namespace maxmargin {

struct TreeReweightedOptions {
    int64_t max_iter = 1000;  // pairs of a forward and a backward pass
    // Closed when bound − score ≤ absolute · min(1, the largest of all scores) + relative · max(|bound|, |score|).
    double relative_tolerance = 1e-9;
    double absolute_tolerance = 1e-9;
    // Stalled when ten iterations lowered the bound by less than this part of bound − score; 0 never stops for it.
    double stall = 1e-3;
    double max_seconds = std::numeric_limits<double>::infinity();  // looked at after every iteration, and between moves
    // A run may end once the bound is not above this: then no labelling is.
    double floor = -std::numeric_limits<double>::infinity();
};

enum class TreeReweightedStop { closed, stalled, max_iter, max_seconds, below_floor };

struct TreeReweightedResult {
    double score = 0.0;  // of labels(), with the scores as they were set
    double bound = 0.0;
    TreeReweightedStop stop = TreeReweightedStop::closed;
    std::vector<double> bounds;  // after each iteration of this run
};

class TreeReweighted {
   public:
    TreeReweighted(const TreeReweighted&) = delete;
    TreeReweighted& operator=(const TreeReweighted&) = delete;
    // The shape is copied. `order` names every node once; where empty, nodes are visited as they are numbered.
    TreeReweighted(const GraphShape& shape, std::vector<int32_t> order);

    // Unary scores of −∞ forbid labels; they are copied. Messages are kept.
    void set_unary(const double* unary);
    // The values must stay where they are until other pairs are set. Messages are kept.
    void set_pairs(const PairScores& pairs);
    void reset_messages();

    // Both scores must be set. Goes on from the messages of the run before; an exception forgets them.
    TreeReweightedResult run(const TreeReweightedOptions& options);
    // By one more iteration, after a run: for each label of each node a number that no labelling with it scores more than. An exception
    // forgets the messages: it needs another run.
    void bound_max_marginals(double* out);
    // The best labelling seen since scores were last set.
    const std::vector<int32_t>& labels() const { return labels_; }

    const GraphShape& shape() const { return shape_; }

   private:
    double largest_score() const;
    void prepare();
    void soften_forbidden();
    std::vector<int32_t> rounded() const;
    void take_if_better(std::vector<int32_t> labels);
    void move_labels(size_t n_iterations, const std::function<bool()>& is_over);
    bool is_closed(const TreeReweightedOptions& options) const;
    bool is_stalled(const std::vector<double>& bounds, const TreeReweightedOptions& options) const;

    std::vector<int64_t> label_offsets_;
    std::vector<int32_t> first_, second_;
    GraphShape shape_;  // of the above
    PairLinks links_;
    Leaves leaves_;
    OrderedGraph graph_;  // the core
    std::unique_ptr<MessagePasses> passes_;
    std::unique_ptr<ForestMoves> moves_;  // made when first needed, as is
    std::unique_ptr<Fusion> fusion_;

    PairScores pairs_;
    std::vector<int64_t> pair_offsets_;
    std::vector<double> unary_;
    std::vector<double> reduced_;  // unary scores with what the leaves add
    std::vector<double> leaf_messages_;
    bool is_prepared_ = false;

    std::vector<int32_t> core_labels_, labels_;
    bool labels_have_moved_ = false;  // by all kinds of moves
    bool offers_help_ = true;         // no round of expansion moves was in vain since scores were set
    double score_ = 0.0, core_score_ = 0.0, bound_ = 0.0, best_of_trees_ = 0.0, largest_ = 0.0;
};

// For searches with changing unary scores. The pair scores must be set.
class TreeReweightedSearch final : public LabellingSearch {
   public:
    TreeReweightedSearch(std::shared_ptr<TreeReweighted> passes, const TreeReweightedOptions& options) : passes_(std::move(passes)), options_(options) {}
    Found best(const double* unary, int32_t* labels) override;
    Found best_above(double floor, bool is_brief, const double* unary, int32_t* labels) override;
    void bound_max_marginals(double* out) override { passes_->bound_max_marginals(out); }

   private:
    std::shared_ptr<TreeReweighted> passes_;
    TreeReweightedOptions options_;
};

}  // namespace maxmargin
