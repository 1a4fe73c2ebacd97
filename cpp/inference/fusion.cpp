#include "inference/fusion.hpp"

#include <algorithm>

namespace maxmargin {

Fusion::Fusion(const GraphShape& shape)
    : shape_(shape),
      flow_(shape.n_nodes, {shape.first, static_cast<size_t>(shape.n_edges)}, {shape.second, static_cast<size_t>(shape.n_edges)}),
      gain_(shape.n_nodes),
      capacity_(shape.n_edges) {}

void Fusion::mix(std::span<const double> unary, const PairScores& pairs, std::span<const int32_t> kept, std::span<const int32_t> offered,
                 std::span<int32_t> mixed) {
    for (int64_t i = 0; i < shape_.n_nodes; ++i) {
        const auto of_node = unary.begin() + shape_.label_offsets[i];
        gain_[i] = of_node[offered[i]] - of_node[kept[i]];
    }
    for (int64_t e = 0; e < shape_.n_edges; ++e) add_edge(e, pairs, kept, offered);
    // The flow of other labels is of no use to these.
    flow_.forget_flow();
    flow_.set_terminals(gain_);
    flow_.set_edges(capacity_, capacity_);
    flow_.solve();
    for (int64_t i = 0; i < shape_.n_nodes; ++i) mixed[i] = flow_.on_source_side(i) ? offered[i] : kept[i];
}

inline void Fusion::add_edge(int64_t e, const PairScores& pairs, std::span<const int32_t> kept, std::span<const int32_t> offered) {
    const int32_t first = shape_.first[e], second = shape_.second[e];
    const auto score = [&](int32_t y, int32_t z) { return pair_score(shape_, pairs, e, y, z); };
    const double both_kept = score(kept[first], kept[second]), both_taken = score(offered[first], offered[second]);
    const double first_taken = score(offered[first], kept[second]), second_taken = score(kept[first], offered[second]);
    const double agreement = (both_kept - first_taken) + (both_taken - second_taken);
    capacity_[e] = std::max(0.0, 0.5 * agreement);
    // Where it is negative, both kept count as first_taken + second_taken − both_taken.
    gain_[first] += agreement >= 0.0 ? first_taken - both_kept + capacity_[e] : both_taken - second_taken;
    gain_[second] += agreement >= 0.0 ? second_taken - both_kept + capacity_[e] : both_taken - first_taken;
}

}  // namespace maxmargin
