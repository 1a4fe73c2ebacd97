// Scores of the labellings of one graph, to be maximised: Σ_i unary_i(y_i) + Σ_e pair_e(y_first(e), y_second(e)).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace maxmargin {

// The nodes, each with its own number of labels, and the edges between them. Several edges may join the same nodes; none joins a node to itself.
struct GraphShape {
    int64_t n_nodes = 0;
    const int64_t* label_offsets = nullptr;  // n_nodes + 1: node i has label_offsets[i+1] − label_offsets[i] ≥ 1 labels; unary scores stand in this order
    int64_t n_edges = 0;
    const int32_t* first = nullptr;   // n_edges
    const int32_t* second = nullptr;  // n_edges
    int n_labels(int64_t node) const { return static_cast<int>(label_offsets[node + 1] - label_offsets[node]); }
};

// What pairs of labels score. Either a table per edge (labels of its first node × labels of its second, row-major, at values + offsets[e];
// edges may share a table), or Potts: values[e] if both labels are equal, else 0 (offsets is null).
struct PairScores {
    const double* values = nullptr;
    const int64_t* offsets = nullptr;
    bool is_potts() const { return offsets == nullptr; }
};

// The highest of some numbers less the lowest.
inline double range_of(std::span<const double> values) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    return *high - *low;
}

inline double pair_score(const GraphShape& shape, const PairScores& pairs, int64_t edge, int32_t first, int32_t second) {
    if (pairs.is_potts()) return first == second ? pairs.values[edge] : 0.0;
    return pairs.values[pairs.offsets[edge] + static_cast<int64_t>(first) * shape.n_labels(shape.second[edge]) + second];
}

inline double total_score(const GraphShape& shape, const double* unary, const PairScores& pairs, const int32_t* labels) {
    double sum = 0.0;
    for (int64_t i = 0; i < shape.n_nodes; ++i) sum += unary[shape.label_offsets[i] + labels[i]];
    for (int64_t e = 0; e < shape.n_edges; ++e) sum += pair_score(shape, pairs, e, labels[shape.first[e]], labels[shape.second[e]]);
    return sum;
}

}  // namespace maxmargin
