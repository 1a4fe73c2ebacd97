// The best labelling of a graph without cycles, by max-product (Viterbi on trees): exact, O(Σ_e labels²), or O(Σ_e labels) for
// Potts. Parallel edges count as one.
#pragma once

#include <vector>

#include "inference/leaves.hpp"
#include "inference/links.hpp"
#include "inference/pairwise.hpp"
#include "inference/search.hpp"

namespace maxmargin {

class ForestSearch final : public LabellingSearch {
   public:
    // The arrays must outlive the object. Nothing but is_forest() may be asked where there is a cycle.
    ForestSearch(const GraphShape& shape, const PairScores& pairs);

    bool is_forest() const { return leaves_.is_forest(); }
    Found best(const double* unary, int32_t* labels) override;
    bool has_max_marginals() const override { return true; }
    void max_marginals(const double* unary, double* out) override;

   private:
    GraphShape shape_;
    PairScores pairs_;
    PairLinks links_;
    Leaves leaves_;
    std::vector<double> scores_, messages_;
};

}  // namespace maxmargin
