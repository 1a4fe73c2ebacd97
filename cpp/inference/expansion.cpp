#include "inference/expansion.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "inference/graph_cut.hpp"
#include "threads/parallel.hpp"

namespace maxmargin {

namespace {

constexpr double tolerance = 1e-10;  // relative to a table's largest entry: what falls short by rounding does not

double pair_score(const GraphShape& shape, const PairScores& pairs, int64_t e, int32_t y, int32_t z) {
    if (pairs.is_potts()) return y == z ? pairs.values[e] : 0.0;
    return pairs.values[pairs.offsets[e] + static_cast<int64_t>(y) * shape.n_labels(shape.second[e]) + z];
}

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

// One move's problem: label 0 of a node keeps what it has, label 1 takes α.
class Moves {
  public:
    explicit Moves(const GraphShape& shape)
        : shape_(shape),
          offsets_(two_labels(shape.n_nodes)),
          unary_(2 * shape.n_nodes),
          tables_(4 * shape.n_edges),
          table_offsets_(shape.n_edges),
          cut_({shape.n_nodes, offsets_.data(), shape.n_edges, shape.first, shape.second}) {
        for (int64_t e = 0; e < shape.n_edges; ++e) table_offsets_[e] = 4 * e;
    }

    void best(std::span<const double> unary, const PairScores& pairs, int32_t alpha, std::span<const int32_t> labels, std::span<int32_t> moved) {
        for (int64_t i = 0; i < shape_.n_nodes; ++i) {
            unary_[2 * i] = unary[shape_.label_offsets[i] + labels[i]];
            unary_[2 * i + 1] = unary[shape_.label_offsets[i] + alpha];
        }
        for (int64_t e = 0; e < shape_.n_edges; ++e) {
            const int32_t y = labels[shape_.first[e]], z = labels[shape_.second[e]];
            tables_[4 * e] = pair_score(shape_, pairs, e, y, z);
            tables_[4 * e + 1] = pair_score(shape_, pairs, e, y, alpha);
            tables_[4 * e + 2] = pair_score(shape_, pairs, e, alpha, z);
            tables_[4 * e + 3] = pair_score(shape_, pairs, e, alpha, alpha);
        }
        // The flow of another label's move is of no use to this one.
        cut_.forget_flow();
        cut_.set_unary_scores(unary_);
        cut_.set_pair_scores({tables_.data(), table_offsets_.data()});
        cut_.solve(moved);
        for (int64_t i = 0; i < shape_.n_nodes; ++i) moved[i] = moved[i] ? alpha : labels[i];
    }

  private:
    static std::vector<int64_t> two_labels(int64_t n_nodes) {
        std::vector<int64_t> offsets(n_nodes + 1);
        for (int64_t i = 0; i <= n_nodes; ++i) offsets[i] = 2 * i;
        return offsets;
    }

    const GraphShape& shape_;
    std::vector<int64_t> offsets_;
    std::vector<double> unary_, tables_;
    std::vector<int64_t> table_offsets_;
    GraphCut cut_;
};

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

Expanded expand(const GraphShape& shape, std::span<const double> unary, const PairScores& pairs, int64_t max_rounds, std::span<int32_t> labels) {
    Expanded result;
    result.score = total_score(shape, unary.data(), pairs, labels.data());
    if (shape.n_nodes == 0) return result;
    Moves moves(shape);
    std::vector<int32_t> moved(shape.n_nodes);
    const int32_t n_labels = shape.n_labels(0);
    // A label whose move was refused is offered again only after another one was taken.
    int32_t refused = 0;
    for (; refused < n_labels && result.n_rounds < max_rounds; ++result.n_rounds)
        for (int32_t alpha = 0; alpha < n_labels && refused < n_labels; ++alpha) {
            moves.best(unary, pairs, alpha, labels, moved);
            const double score = total_score(shape, unary.data(), pairs, moved.data());
            ++refused;
            if (!(score > result.score)) continue;
            std::copy(moved.begin(), moved.end(), labels.begin());
            result.score = score;
            ++result.n_moves;
            refused = 1;  // the same label again would change nothing
        }
    return result;
}

}  // namespace maxmargin
