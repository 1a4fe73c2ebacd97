#include "inference/partition.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace maxmargin {

const double* Partition::constrained(const std::vector<Constraint>& constraints) {
    scores_.assign(unary_, unary_ + shape_.label_offsets[shape_.n_nodes]);
    for (const Constraint& c : constraints) {
        double* of_node = scores_.data() + shape_.label_offsets[c.node];
        for (int k = 0; k < shape_.n_labels(c.node); ++k)
            if ((k == c.label) != c.is_fixed) of_node[k] = -std::numeric_limits<double>::infinity();
    }
    return scores_.data();
}

void Partition::list(const std::vector<int32_t>& labels, double score) {
    found_.labels.insert(found_.labels.end(), labels.begin(), labels.end());
    found_.scores.push_back(score);
}

Labellings Partition::sorted(bool is_exact) const {
    std::vector<int64_t> order(found_.scores.size());
    std::iota(order.begin(), order.end(), int64_t{0});
    std::stable_sort(order.begin(), order.end(), [this](int64_t a, int64_t b) { return found_.scores[a] > found_.scores[b]; });
    Labellings result{{}, {}, is_exact};
    for (const int64_t m : order) {
        const auto begin = found_.labels.begin() + m * shape_.n_nodes;
        result.labels.insert(result.labels.end(), begin, begin + shape_.n_nodes);
        result.scores.push_back(found_.scores[m]);
    }
    return result;
}

}  // namespace maxmargin
