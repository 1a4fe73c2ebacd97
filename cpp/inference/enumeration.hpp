// The best labelling of a small graph by looking at all of them.
//
// Nodes take their labels in order, and the scores of a node's labels given those of the nodes before it are formed once for
// each choice of the latter. Sums are taken afresh on every way down: there is no drift. Of equally good labellings the
// first in lexicographic order is kept.
#pragma once

#include <vector>

#include "inference/links.hpp"
#include "inference/pairwise.hpp"
#include "inference/search.hpp"

namespace maxmargin {

// Labellings of the first nodes alone count, too: so many take about a second, or some where every node has many edges. 24 nodes
// of two labels fit.
constexpr int64_t most_enumerated = int64_t{1} << 25;

// The number of labellings of the first node, the first two nodes, …, all nodes, or most_enumerated + 1 where there are more.
int64_t count_enumerated(const GraphShape& shape);

class EnumerationSearch final : public LabellingSearch {
   public:
    // The arrays must outlive the object; count_enumerated() is at most most_enumerated.
    EnumerationSearch(const GraphShape& shape, const PairScores& pairs);

    Found best(const double* unary, int32_t* labels) override;
    bool has_max_marginals() const override { return true; }
    void max_marginals(const double* unary, double* out) override;

    // The labelling with the highest loss · (1 + score − true_score) above 0, the loss being a sum over nodes, laid out like unary
    // scores; false where there is none.
    bool best_product(const double* unary, const double* losses, double true_score, int32_t* labels);

   private:
    template <class Chosen, class AtLast, class Leave>
    void walk(const double* unary, std::vector<int32_t>& now, Chosen&& chosen, AtLast&& at_last, Leave&& leave);
    void enumerate(const double* unary, double* max_marginals, int32_t* labels);
    void score_labels(int64_t node, const double* unary, double so_far, const int32_t* labels);

    GraphShape shape_;
    PairScores pairs_;
    PairLinks links_;
    std::vector<double> scores_;  // of the labels of each node, given those of the nodes before it
};

}  // namespace maxmargin
