#include "inference/search.hpp"

#include <limits>
#include <vector>

namespace maxmargin {

Rival LabellingSearch::second_best(const GraphShape& shape, const double* unary, const int32_t* labels) {
    std::vector<double> marginals(shape.label_offsets[shape.n_nodes]);
    max_marginals(unary, marginals.data());
    Rival best{-std::numeric_limits<double>::infinity()};
    for (int64_t i = 0; i < shape.n_nodes; ++i)
        for (int32_t k = 0; k < shape.n_labels(i); ++k)
            if (const double value = marginals[shape.label_offsets[i] + k]; k != labels[i] && value > best.score) best = {value, static_cast<int32_t>(i), k};
    return best;
}

}  // namespace maxmargin
