// Labellings of graphs with many labels by alpha-expansion (Boykov, Veksler and Zabih 2001, section 5):
//
//     max_y  Σ_i unary_i(y_i) + Σ_e pair_e(y_first(e), y_second(e))
//
// A move offers one label α to all nodes at once; which of them take it is a graph cut (fusion.hpp), and the move is made if it scores more.
// The labels are offered in turn until a whole round changes nothing. A move is the best of its kind where every edge lets it be a cut,
//
//     pair_e(α, α) + pair_e(β, γ) ≥ pair_e(β, α) + pair_e(α, γ)       for all labels α, β, γ,
//
// which holds where −pair_e is a metric, and so for Potts scores ≥ 0 (Kolmogorov and Zabih 2004, section 5). For a metric the
// costs at the end are at most 2·(largest / smallest cost of two different labels) times the least ones; with two labels they are the least.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "inference/fusion.hpp"
#include "inference/pairwise.hpp"

namespace maxmargin {

// Throws std::invalid_argument at the first edge at which a move may not be the best, or node that has other labels than the first.
void check_expandable(const GraphShape& shape, const PairScores& pairs);

// Each node's best label where there are no edges; the first of equally good ones.
std::vector<int32_t> best_unary_labels(const GraphShape& shape, std::span<const double> unary);

struct Expanded {
    double score = 0.0;
    int64_t n_moves = 0;   // taken
    int64_t n_rounds = 0;  // the last of which changed nothing, unless max_rounds came first
};

// Improves the labelling that stands in labels. Scores need not be expandable; unary ones of −∞ forbid labels, which those given are not. Labels
// that few nodes have are not offered. The result is the same for the same start. Where is_over() says so, which is asked between moves, it ends early.
Expanded expand(Fusion& fusion, const GraphShape& shape, std::span<const double> unary, const PairScores& pairs, int64_t max_rounds,
                const std::function<bool()>& is_over, std::span<int32_t> labels);
Expanded expand(const GraphShape& shape, std::span<const double> unary, const PairScores& pairs, int64_t max_rounds, std::span<int32_t> labels);

}  // namespace maxmargin
