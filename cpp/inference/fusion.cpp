#include "inference/fusion.hpp"

#include <algorithm>

namespace maxmargin {

namespace {

std::vector<int64_t> multiples(int64_t step, int64_t count) {
    std::vector<int64_t> numbers(count);
    for (int64_t k = 0; k < count; ++k) numbers[k] = step * k;
    return numbers;
}

double pair_score(const GraphShape& shape, const PairScores& pairs, int64_t e, int32_t y, int32_t z) {
    if (pairs.is_potts()) return y == z ? pairs.values[e] : 0.0;
    return pairs.values[pairs.offsets[e] + static_cast<int64_t>(y) * shape.n_labels(shape.second[e]) + z];
}

}  // namespace

Fusion::Fusion(const GraphShape& shape)
    : shape_(shape),
      offsets_(multiples(2, shape.n_nodes + 1)),
      unary_(2 * shape.n_nodes),
      tables_(4 * shape.n_edges),
      table_offsets_(multiples(4, shape.n_edges)),
      cut_({shape.n_nodes, offsets_.data(), shape.n_edges, shape.first, shape.second}) {}

void Fusion::mix(std::span<const double> unary, const PairScores& pairs, std::span<const int32_t> kept, std::span<const int32_t> offered,
                 std::span<int32_t> mixed) {
    for (int64_t i = 0; i < shape_.n_nodes; ++i) {
        unary_[2 * i] = unary[shape_.label_offsets[i] + kept[i]];
        unary_[2 * i + 1] = unary[shape_.label_offsets[i] + offered[i]];
    }
    for (int64_t e = 0; e < shape_.n_edges; ++e) {
        const int32_t first = shape_.first[e], second = shape_.second[e];
        double* table = tables_.data() + 4 * e;
        table[1] = pair_score(shape_, pairs, e, kept[first], offered[second]);
        table[2] = pair_score(shape_, pairs, e, offered[first], kept[second]);
        table[3] = pair_score(shape_, pairs, e, offered[first], offered[second]);
        table[0] = std::max(pair_score(shape_, pairs, e, kept[first], kept[second]), table[1] + table[2] - table[3]);
    }
    // The flow of other labels is of no use to these.
    cut_.forget_flow();
    cut_.set_unary_scores(unary_);
    cut_.set_pair_scores({tables_.data(), table_offsets_.data()});
    cut_.solve(mixed);
    for (int64_t i = 0; i < shape_.n_nodes; ++i) mixed[i] = mixed[i] ? offered[i] : kept[i];
}

}  // namespace maxmargin
