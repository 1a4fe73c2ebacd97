#include "inference/expansion.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "inference/fusion.hpp"
#include "threads/parallel.hpp"

namespace maxmargin {

namespace {

// A label that fewer nodes have is not offered: a cut of the whole graph is too much for it.
constexpr int64_t nodes_per_taker = 16;
constexpr double tolerance = 1e-10;  // relative to a table's largest entry: what falls short by rounding does not

void check_table(const double* table, int64_t n_labels, int64_t e) {
    double size = 0.0;
    for (int64_t k = 0; k < n_labels * n_labels; ++k) size = std::max(size, std::abs(table[k]));
    const auto at = [&](int64_t y, int64_t z) { return table[y * n_labels + z]; };
    for (int64_t alpha = 0; alpha < n_labels; ++alpha) {
        heartbeat();
        for (int64_t beta = 0; beta < n_labels; ++beta)
            for (int64_t gamma = 0; gamma < n_labels; ++gamma)
                if (at(alpha, alpha) + at(beta, gamma) < at(beta, alpha) + at(alpha, gamma) - tolerance * size) {
                    const std::string a = std::to_string(alpha), b = std::to_string(beta), c = std::to_string(gamma);
                    throw std::invalid_argument("the pair scores of edge " + std::to_string(e) + " are no metric: those of labels (" + a + ", " + a +
                                                ") and (" + b + ", " + c + ") sum to less than those of (" + b + ", " + a + ") and (" + a + ", " + c +
                                                "), so that label " + a + " cannot be offered by a graph cut. Use TRW-S for such scores.");
                }
    }
}

// The label, where a node has it and may take it; else what the node has. Returns how many nodes have it.
int64_t offer(const GraphShape& shape, std::span<const double> unary, int32_t alpha, std::span<const int32_t> labels, std::vector<int32_t>& offered) {
    constexpr double forbidden = -std::numeric_limits<double>::infinity();
    int64_t n_takers = 0;
    for (int64_t i = 0; i < shape.n_nodes; ++i) {
        const bool has_label = alpha < shape.n_labels(i) && unary[shape.label_offsets[i] + alpha] > forbidden;
        offered[i] = has_label ? alpha : labels[i];
        n_takers += has_label;
    }
    return n_takers;
}

}  // namespace

void check_expandable(const GraphShape& shape, const PairScores& pairs) {
    for (int64_t i = 1; i < shape.n_nodes; ++i)
        if (shape.n_labels(i) != shape.n_labels(0))
            throw std::invalid_argument("node " + std::to_string(i) + " has " + std::to_string(shape.n_labels(i)) + " labels and node 0 has " +
                                        std::to_string(shape.n_labels(0)) +
                                        ": alpha-expansion offers one set of labels to all nodes. Use TRW-S for nodes with labels of their own.");
    std::set<int64_t> seen;
    for (int64_t e = 0; e < shape.n_edges; ++e) {
        if (pairs.is_potts()) {
            if (pairs.values[e] < 0.0)
                throw std::invalid_argument("the Potts score of edge " + std::to_string(e) +
                                            " is negative: alpha-expansion needs edges that like equal labels. Hold their weights at or above 0 (nonnegative='edges', "
                                            "features of edges being so too), or use TRW-S for such scores.");
        } else if (seen.insert(pairs.offsets[e]).second) {
            check_table(pairs.values + pairs.offsets[e], shape.n_labels(0), e);
        }
    }
}

std::vector<int32_t> best_unary_labels(const GraphShape& shape, std::span<const double> unary) {
    std::vector<int32_t> labels(shape.n_nodes);
    for (int64_t i = 0; i < shape.n_nodes; ++i) {
        const auto begin = unary.begin() + shape.label_offsets[i];
        labels[i] = static_cast<int32_t>(std::max_element(begin, begin + shape.n_labels(i)) - begin);
    }
    return labels;
}

Expanded expand(Fusion& fusion, const GraphShape& shape, std::span<const double> unary, const PairScores& pairs, int64_t max_rounds,
                const std::function<bool()>& is_over, std::span<int32_t> labels) {
    Expanded result;
    result.score = total_score(shape, unary.data(), pairs, labels.data());
    std::vector<int32_t> offered(shape.n_nodes), moved(shape.n_nodes);
    int32_t n_labels = 0;
    for (int64_t i = 0; i < shape.n_nodes; ++i) n_labels = std::max(n_labels, shape.n_labels(i));
    // A label whose move was refused is offered again only after another one was taken.
    int32_t refused = 0;
    for (; refused < n_labels && result.n_rounds < max_rounds; ++result.n_rounds)
        for (int32_t alpha = 0; alpha < n_labels && refused < n_labels; ++alpha) {
            if (is_over()) return result;
            ++refused;
            if (offer(shape, unary, alpha, labels, offered) < shape.n_nodes / nodes_per_taker) continue;
            fusion.mix(unary, pairs, labels, offered, moved);
            const double score = total_score(shape, unary.data(), pairs, moved.data());
            if (!(score > result.score)) continue;
            std::copy(moved.begin(), moved.end(), labels.begin());
            result.score = score;
            ++result.n_moves;
            refused = 1;  // the same label again would change nothing
        }
    return result;
}

Expanded expand(const GraphShape& shape, std::span<const double> unary, const PairScores& pairs, int64_t max_rounds, std::span<int32_t> labels) {
    Fusion fusion(shape);
    return expand(fusion, shape, unary, pairs, max_rounds, [] { return false; }, labels);
}

}  // namespace maxmargin
