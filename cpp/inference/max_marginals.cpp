#include "inference/max_marginals.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "threads/parallel.hpp"

namespace maxmargin {

bool max_marginals(const GraphShape& shape, const double* unary, LabellingSearch& search, double* out) {
    if (search.has_max_marginals()) {
        search.max_marginals(unary, out);
        return true;
    }
    constexpr double infinity = std::numeric_limits<double>::infinity(), forbidden = -infinity;
    const int64_t n_scores = shape.label_offsets[shape.n_nodes];
    std::vector<double> scores(unary, unary + n_scores);
    std::vector<double> bounds(n_scores, infinity);
    std::vector<int32_t> best(shape.n_nodes), labels(shape.n_nodes);
    bool is_exact = true;
    std::fill(out, out + n_scores, forbidden);
    // What one search finds tells something of every node. No more than `known` need be found.
    const auto find = [&](double known, std::vector<int32_t>& found) {
        heartbeat();
        const Found result = search.best_above(known, false, scores.data(), found.data());
        is_exact = is_exact && result.score > forbidden && (result.is_exact || result.bound <= known);
        for (int64_t i = 0; i < shape.n_nodes; ++i) {
            double& of_label = out[shape.label_offsets[i] + found[i]];
            of_label = std::max(of_label, result.score);
        }
    };
    find(forbidden, best);
    search.bound_max_marginals(bounds.data());
    for (int64_t i = 0; i < shape.n_nodes; ++i) {
        const int64_t begin = shape.label_offsets[i];
        const int n_labels = shape.n_labels(i);
        for (int label = 0; label < n_labels; ++label) {
            if (label == best[i] || out[begin + label] >= bounds[begin + label]) continue;
            std::fill_n(scores.begin() + begin, n_labels, forbidden);
            scores[begin + label] = unary[begin + label];
            find(out[begin + label], labels);
        }
        std::copy_n(unary + begin, n_labels, scores.begin() + begin);
    }
    return is_exact;
}

}  // namespace maxmargin
