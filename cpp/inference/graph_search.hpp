// The search for the best labelling of one graph whose scores change from call to call: which method, and what it keeps.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "inference/enumeration.hpp"
#include "inference/forest.hpp"
#include "inference/graph_cut.hpp"
#include "inference/pairwise.hpp"
#include "inference/search.hpp"
#include "inference/trws.hpp"

namespace maxmargin {

enum class GraphMethod { automatic, forest, cut, enumeration, trws, expansion };
constexpr int n_graph_methods = 6;

struct GraphInference {
    GraphMethod method = GraphMethod::automatic;
    TreeReweightedOptions passes;
};

class GraphSearch {
  public:
    // label_counts: of each node. first and second must outlive the object. Potts scores are a number for each edge, others a table.
    GraphSearch(std::span<const int32_t> label_counts, int64_t n_edges, const int32_t* first, const int32_t* second, bool is_potts,
                const GraphInference& inference);

    const GraphShape& shape() const { return shape_; }
    // To be filled in before a search; pairs_changed() follows where those of pairs are.
    double* unary() { return unary_.data(); }
    void pairs_changed();
    double* pairs(int64_t edge) { return pair_values_.data() + (pair_offsets_.empty() ? edge : pair_offsets_[edge]); }

    // What best() searches by at the pair scores as they are.
    GraphMethod method() const { return method_; }
    // The best labelling at the scores as they are; throws std::invalid_argument where the method cannot serve them. TRW-S makes at most so
    // many passes, and no more than its options say.
    Found best(int32_t* labels, int64_t most_passes = std::numeric_limits<int64_t>::max());
    // The labelling with the highest loss · (1 + score − score of the truth), losses being those of the labels of each node; the truth
    // where none is above 0. By enumeration, whatever the method; throws where there are too many labellings.
    void best_product(const double* losses, const int32_t* truth, int32_t* labels);
    // A search over the same pair scores for callers that change unary ones; it lives as long as these stay, and shares the messages of
    // best(), which must not be called meanwhile. It is the method's, or a better one; throws where that cannot serve the scores.
    std::unique_ptr<LabellingSearch> with_changes();
    GraphMethod method_with_changes() const;
    double score(const int32_t* labels) const { return total_score(shape_, unary_.data(), pair_scores(), labels); }
    PairScores pair_scores() const { return {pair_values_.data(), pair_offsets_.empty() ? nullptr : pair_offsets_.data()}; }

  private:
    ForestSearch forest() const;
    EnumerationSearch enumeration() const;
    GraphMethod method_for_pairs() const;
    bool likes_agreement() const;
    Found by_cut(int32_t* labels);
    Found by_passes(int64_t most_passes, int32_t* labels);
    std::shared_ptr<TreeReweighted> passes();
    Found by_expansion(int32_t* labels);

    std::vector<int64_t> label_offsets_;
    GraphShape shape_;
    GraphInference inference_;
    bool is_forest_, is_few_, has_two_labels_;
    GraphMethod method_;                                      // for the pair scores as they are
    bool cut_has_pairs_ = false, passes_have_pairs_ = false;  // whether they were told
    std::vector<double> unary_, pair_values_;
    std::vector<int64_t> pair_offsets_;
    std::unique_ptr<GraphCut> cut_;             // keeps its flow
    std::shared_ptr<TreeReweighted> passes_;    // keeps its messages
};

}  // namespace maxmargin
