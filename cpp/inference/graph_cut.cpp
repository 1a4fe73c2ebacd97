#include "inference/graph_cut.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <stdexcept>
#include <string>

#include "threads/parallel.hpp"

namespace maxmargin {

namespace {

// Tables are often sums and differences of larger numbers: what falls short of agreement by rounding is none.
constexpr double agreement_tolerance = 1e-10;

std::string as_text(double number) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", number);
    return text;
}

}  // namespace

GraphShape GraphCut::checked(const GraphShape& shape) {
    for (int64_t i = 0; i < shape.n_nodes; ++i)
        if (shape.n_labels(i) > 2)
            throw std::invalid_argument("node " + std::to_string(i) + " has " + std::to_string(shape.n_labels(i)) +
                                        " labels: a graph cut chooses between one or two; for more use alpha-expansion or TRW-S.");
    return shape;
}

GraphCut::GraphCut(const GraphShape& shape)
    : label_offsets_(shape.label_offsets, shape.label_offsets + shape.n_nodes + 1),
      first_(shape.first, shape.first + shape.n_edges),
      second_(shape.second, shape.second + shape.n_edges),
      shape_(checked({shape.n_nodes, label_offsets_.data(), shape.n_edges, first_.data(), second_.data()})),
      flow_(shape.n_nodes, first_, second_),
      unary_(label_offsets_.back()),
      has_two_labels_(label_offsets_.back() == 2 * shape.n_nodes),
      capacity_(shape.n_edges),
      edge_gain_(shape.n_nodes),
      gain_(shape.n_nodes) {}

void GraphCut::set_unary_scores(std::span<const double> unary) { std::copy(unary.begin(), unary.end(), unary_.begin()); }

GraphCut::Table GraphCut::table_of(int64_t e, const PairScores& pairs) const {
    Table table;
    const int rows = shape_.n_labels(first_[e]), columns = shape_.n_labels(second_[e]);
    for (int y = 0; y < 2; ++y)
        for (int z = 0; z < 2; ++z) {
            const int row = std::min(y, rows - 1), column = std::min(z, columns - 1);
            if (pairs.is_potts()) table.of[y][z] = row == column ? pairs.values[e] : 0.0;
            else table.of[y][z] = pairs.values[pairs.offsets[e] + row * columns + column];
        }
    return table;
}

// In this order it is exactly 0 where rows or columns are equal, as they are at nodes with one label.
double GraphCut::agreement(const Table& table) { return (table.of[0][0] - table.of[1][0]) + (table.of[1][1] - table.of[0][1]); }

void GraphCut::check_agreement(int64_t e, const Table& table) const {
    const auto& of = table.of;
    const double size = std::abs(of[0][0]) + std::abs(of[0][1]) + std::abs(of[1][0]) + std::abs(of[1][1]);
    if (agreement(table) >= -agreement_tolerance * size) return;
    throw std::invalid_argument("edge " + std::to_string(e) + " between nodes " + std::to_string(first_[e]) + " and " + std::to_string(second_[e]) +
                                " scores " + as_text(of[0][0]) + " at labels (0, 0), " + as_text(of[0][1]) + " at (0, 1), " + as_text(of[1][0]) +
                                " at (1, 0) and " + as_text(of[1][1]) +
                                " at (1, 1): a graph cut needs the first and last to sum to no less than the other two. Use TRW-S for such scores.");
}

void GraphCut::set_pair_scores(const PairScores& pairs) {
    if (pairs.is_potts() && has_two_labels_) set_potts_scores(pairs.values);
    else set_tables(pairs);
    flow_.set_edges(capacity_, capacity_);
}

// Neither end gains by its label alone.
void GraphCut::set_potts_scores(const double* values) {
    for (int64_t e = 0; e < shape_.n_edges; ++e)
        if (values[e] < 0.0) check_agreement(e, table_of(e, {values, nullptr}));
    tables_.clear();
    std::copy_n(values, shape_.n_edges, capacity_.begin());
    std::fill(edge_gain_.begin(), edge_gain_.end(), 0.0);
}

void GraphCut::set_tables(const PairScores& pairs) {
    for (int64_t e = 0; e < shape_.n_edges; ++e) check_agreement(e, table_of(e, pairs));
    tables_.resize(shape_.n_edges);
    std::fill(edge_gain_.begin(), edge_gain_.end(), 0.0);
    for (int64_t e = 0; e < shape_.n_edges; ++e) {
        tables_[e] = table_of(e, pairs);
        const auto& of = tables_[e].of;
        capacity_[e] = std::max(0.0, 0.5 * agreement(tables_[e]));
        edge_gain_[first_[e]] += of[1][0] - of[0][0] + capacity_[e];
        edge_gain_[second_[e]] += of[0][1] - of[0][0] + capacity_[e];
    }
}

void GraphCut::forget_flow() { flow_.forget_flow(); }

double GraphCut::solve(std::span<int32_t> labels) {
    for (int64_t i = 0; i < shape_.n_nodes; ++i)
        gain_[i] = shape_.n_labels(i) == 2 ? unary_[label_offsets_[i] + 1] - unary_[label_offsets_[i]] + edge_gain_[i] : 0.0;
    flow_.set_terminals(gain_);
    flow_.solve();
    for (int64_t i = 0; i < shape_.n_nodes; ++i) labels[i] = flow_.on_source_side(i);
    return score_of(labels);
}

double GraphCut::score_of(std::span<const int32_t> labels) const {
    double score = 0.0;
    for (int64_t i = 0; i < shape_.n_nodes; ++i) score += unary_[label_offsets_[i] + labels[i]];
    for (int64_t e = 0; e < shape_.n_edges; ++e) {
        const int32_t one = labels[first_[e]], other = labels[second_[e]];
        if (!tables_.empty()) score += tables_[e].of[one][other];
        else if (one == other) score += capacity_[e];
    }
    return score;
}

GraphCutSearch::GraphCutSearch(const GraphShape& shape, const PairScores& pairs) : cut_(shape), pairs_(pairs), reach_(shape.n_nodes, 0.0) {
    cut_.set_pair_scores(pairs);
    for (int64_t e = 0; e < shape.n_edges; ++e) {
        const size_t n_pairs = static_cast<size_t>(shape.n_labels(shape.first[e])) * shape.n_labels(shape.second[e]);
        const double range = pairs.is_potts() ? std::abs(pairs.values[e]) : range_of({pairs.values + pairs.offsets[e], n_pairs});
        // Twice what is needed: rounding is far less.
        reach_[shape.first[e]] += 2.0 * range;
        reach_[shape.second[e]] += 2.0 * range;
    }
}

Found GraphCutSearch::best(const double* unary, int32_t* labels) {
    const GraphShape& shape = cut_.shape();
    constexpr double forbidden = -std::numeric_limits<double>::infinity();
    softened_.assign(unary, unary + shape.label_offsets[shape.n_nodes]);
    // No less than what any node gained so far, or it would be lost in the rounding of the flow that is kept.
    for (int64_t i = 0; i < shape.n_nodes; ++i)
        if (const double* of_node = unary + shape.label_offsets[i]; shape.n_labels(i) == 2 && std::min(of_node[0], of_node[1]) > forbidden)
            largest_gain_ = std::max(largest_gain_, std::abs(of_node[1] - of_node[0]));
    for (int64_t i = 0; i < shape.n_nodes; ++i) {
        if (shape.n_labels(i) < 2) continue;
        double* of_node = softened_.data() + shape.label_offsets[i];
        const double reach = std::max(reach_[i], largest_gain_);
        for (int label = 0; label < 2; ++label)
            if (of_node[label] == forbidden) {
                of_node[label] = reach > 0.0 ? -reach : -1.0;
                of_node[1 - label] = 0.0;
            }
    }
    cut_.set_unary_scores(softened_);
    cut_.solve({labels, static_cast<size_t>(shape.n_nodes)});
    const double score = total_score(shape, unary, pairs_, labels);
    return {score, score, score > forbidden};
}

class GraphCutSearch::Switches {
  public:
    Switches(GraphCutSearch& search, const double* unary) : search_(search), unary_(unary), shape_(search.cut_.shape()), labels(shape_.n_nodes) {
        score = search.best(unary, labels.data()).score;
        // About what as many searches look at.
        work_ = shape_.n_nodes * (shape_.n_nodes + 2 * shape_.n_edges);
    }
    int64_t place_of_other(int64_t node) const { return shape_.label_offsets[node] + 1 - labels[node]; }
    bool is_possible(int64_t node) const { return shape_.n_labels(node) == 2 && unary_[place_of_other(node)] > forbidden; }
    // How much less labellings with the other label score, or `enough` where it is at least that.
    double cost(int64_t node, double enough) {
        if (work_ >= 0) {
            const double found = search_.cut_.cost_of_switching(node, enough, work_);
            if (work_ >= 0) return found;
        }
        // The flow is that of other scores from now on.
        forced_.assign(unary_, unary_ + shape_.label_offsets[shape_.n_nodes]);
        forced_[shape_.label_offsets[node] + labels[node]] = forbidden;
        other_labels_.resize(shape_.n_nodes);
        return std::min(score - search_.best(forced_.data(), other_labels_.data()).score, enough);
    }

  private:
    static constexpr double forbidden = -std::numeric_limits<double>::infinity();
    GraphCutSearch& search_;
    const double* unary_;
    const GraphShape& shape_;
    int64_t work_;
    std::vector<double> forced_;
    std::vector<int32_t> other_labels_;

  public:
    std::vector<int32_t> labels;  // the best ones
    double score;
};

void GraphCutSearch::max_marginals(const double* unary, double* out) {
    Switches switches(*this, unary);
    const GraphShape& shape = cut_.shape();
    for (int64_t i = 0; i < shape.n_nodes; ++i) {
        heartbeat();
        out[shape.label_offsets[i] + switches.labels[i]] = switches.score;
        if (shape.n_labels(i) < 2) continue;
        const int64_t other = switches.place_of_other(i);
        out[other] = switches.is_possible(i) ? switches.score - switches.cost(i, std::numeric_limits<double>::infinity()) : unary[other];
    }
}

// Nodes whose switch costs more than the cheapest so far are given up as soon as that is known, which leaves little to find.
Rival GraphCutSearch::second_best(const GraphShape& shape, const double* unary, const int32_t* best_labels) {
    Switches switches(*this, unary);
    // Rounding may decide between equals in another way than before.
    if (const auto [one, other] = std::mismatch(switches.labels.begin(), switches.labels.end(), best_labels); one != switches.labels.end())
        return {switches.score, static_cast<int32_t>(one - switches.labels.begin()), *one};
    double least = std::numeric_limits<double>::infinity();
    int64_t node = -1;
    const auto offer = [&](int64_t i, double cost) {
        if (!(cost < least)) return;
        least = cost;
        node = i;
    };
    for (int64_t i = 0; i < shape.n_nodes; ++i)
        if (switches.is_possible(i)) offer(i, cut_.cost_of_switching_alone(i));
    for (int64_t i = 0; i < shape.n_nodes; ++i) {
        heartbeat();
        if (switches.is_possible(i)) offer(i, switches.cost(i, least));
    }
    if (node < 0) return {-std::numeric_limits<double>::infinity()};
    return {switches.score - least, static_cast<int32_t>(node), 1 - switches.labels[node]};
}

}  // namespace maxmargin
