// Labels of the nodes of graphs, one graph per example, loss by node:
//
//     Ψ = Σ_i features of node i at its label  +  Σ_e features of edge e at its pair of labels
//
// Labels are the same for all nodes, or each node has candidates of its own with a row of features each, and each edge a row for
// every pair of them. Codes: one label per node, counted within the node where it has candidates.
//
// Table: the weights of edge features, number (type · n_edge_features + feature) · n_pair_columns + column. A pair of labels has a
// column and a coefficient, so that pairs may share weights: in the Potts model those that agree have column 0, the others none.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "inference/graph_search.hpp"
#include "structures/structure.hpp"

namespace maxmargin {

// Arrays of all graphs, one after the other; nodes of edges are counted within their graph.
struct GraphData {
    int64_t n_examples = 0;
    const int64_t* node_offsets = nullptr;  // n_examples + 1
    const int64_t* edge_offsets = nullptr;  // n_examples + 1
    const int32_t* first = nullptr;         // by edge
    const int32_t* second = nullptr;

    int n_labels = 1;                     // of all nodes; 1 where they have candidates
    const int64_t* candidates = nullptr;  // n_nodes + 1: node i has the feature rows candidates[i] … candidates[i + 1] − 1; or null
    const int64_t* pair_rows = nullptr;   // n_edges + 1: edge e has these rows of edge features, one for each pair of candidates; or null

    int64_t n_edge_features = 0;
    const double* edge_features = nullptr;  // edges (or pairs of candidates) × n_edge_features
    int n_types = 1;
    const int32_t* types = nullptr;  // by edge, or null
    int n_pair_columns = 1;
    const int32_t* pair_column = nullptr;       // n_labels × n_labels, −1 for pairs that score nothing; null with candidates
    const double* pair_coefficient = nullptr;   // n_labels × n_labels

    const int32_t* truth = nullptr;  // by node, or null for prediction only
    NodeLoss loss;
    GraphInference inference;
};

class Graph final : public Structure {
  public:
    explicit Graph(const GraphData& data);
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;

    int64_t n_examples() const override { return data_.n_examples; }
    int n_labels() const override { return data_.n_labels; }
    int64_t n_table() const override { return data_.n_types * data_.n_edge_features * data_.n_pair_columns; }
    bool counts_table() const override { return false; }
    RowRange rows(int64_t example) const override;
    int64_t code_length(int64_t example) const override { return nodes(example).length(); }
    bool has_truth() const override { return data_.truth != nullptr; }
    // By enumeration: every graph needs few labellings.
    bool has_slack_search() const override;
    // How many labellings an enumeration goes through, those of the first nodes included; at most most_enumerated + 1.
    int64_t n_enumerated(int64_t example) const;
    bool is_code(int64_t example, std::span<const int32_t> numbers) const override;

    void prepare(const float* table, int, std::vector<float>& out) const override { out.assign(table, table + n_table()); }
    void prepare(const double* table, int, std::vector<double>& out) const override { out.assign(table, table + n_table()); }
    void search(int64_t example, PartScores<float> scores, Search kind, SearchMemory<float>&, int32_t* code) const override {
        search_any(example, scores, kind, code);
    }
    void search(int64_t example, PartScores<double> scores, Search kind, SearchMemory<double>&, int32_t* code) const override {
        search_any(example, scores, kind, code);
    }
    // From now on a search by TRW-S makes at most so many passes. Not while other threads search.
    void limit_passes(int64_t most) { most_passes_ = most; }
    // By how much the last search of each example may have missed the best value: no output is worth more than what was found and
    // this. 0 where it was exact, NaN where nothing is known.
    std::span<const double> shortfalls() const { return shortfalls_; }
    // How many searches since the last call are not known to be exact.
    int64_t take_open() const { return n_open_.exchange(0); }
    // How many searches each method has made; of several labellings of a graph together, one.
    int64_t n_searches(GraphMethod method) const { return n_searches_[static_cast<size_t>(method)]; }
    bool is_truth(int64_t example, const int32_t* code) const override;
    double loss(int64_t example, const int32_t* code) const override;
    const int32_t* true_code(int64_t example) const override { return data_.truth + nodes(example).begin; }
    void between(int64_t example, const int32_t* right, const int32_t* code, Parts& parts) const override;

    bool has_places() const override { return true; }
    int labels_at(int64_t example, int64_t place) const override { return labels_of(nodes(example).begin + place); }
    int64_t score_place(int64_t example, int64_t place, int32_t label, int stride) const override {
        const int64_t node = nodes(example).begin + place;
        return data_.candidates ? (data_.candidates[node] + label - rows(example).begin) * stride : place * stride + label;
    }
    double loss_at(int64_t example, int64_t place, int32_t label) const override {
        const int64_t node = nodes(example).begin + place;
        return data_.loss(node, data_.truth[node], label, data_.n_labels);
    }
    double place_weight(int64_t example, int64_t place) const override {
        return data_.loss.weight ? data_.loss.weight[nodes(example).begin + place] : 1.0;
    }
    double score(int64_t example, PartScores<double> scores, const int32_t* code) const override;

    bool has_max_marginals() const override { return true; }
    void max_marginals(int64_t example, PartScores<double> scores, double* out) const override;
    bool has_k_best() const override { return true; }
    void k_best(int64_t example, PartScores<double> scores, int64_t k, std::vector<int32_t>& codes, std::vector<double>& values) const override;

  private:
    RowRange nodes(int64_t example) const { return {data_.node_offsets[example], data_.node_offsets[example + 1]}; }
    RowRange edges(int64_t example) const { return {data_.edge_offsets[example], data_.edge_offsets[example + 1]}; }
    int labels_of(int64_t node) const { return data_.candidates ? static_cast<int>(data_.candidates[node + 1] - data_.candidates[node]) : data_.n_labels; }
    // The row of features of an edge whose ends have these labels, the column of their weights (−1: none) and its coefficient.
    struct PairPlace {
        int64_t row;
        int64_t column;
        double coefficient;
    };
    PairPlace place_of(int64_t edge, int32_t a, int32_t b, int n_second) const;
    int64_t first_weight(int64_t edge) const { return (data_.types ? data_.types[edge] : 0) * data_.n_edge_features * data_.n_pair_columns; }

    void count(GraphMethod method) const { ++n_searches_[static_cast<size_t>(method)]; }
    template <class Scalar>
    void search_slack(int64_t example, PartScores<Scalar> scores, int32_t* code) const;
    template <class Scalar>
    void search_any(int64_t example, PartScores<Scalar> scores, Search kind, int32_t* code) const;
    // The search of an example, kept from call to call, with its scores set.
    template <class Scalar>
    GraphSearch& scored(int64_t example, PartScores<Scalar> scores, Search kind) const;
    template <class Scalar>
    void score_pairs(int64_t example, const Scalar* table, GraphSearch& search) const;
    template <class Scalar>
    double pair_score(int64_t edge, PairPlace place, const Scalar* table) const;
    void add_edge(int64_t edge, int32_t a, int32_t b, int n_second, double sign, std::vector<double>& sums, std::vector<int64_t>& touched) const;

    GraphData data_;
    bool is_potts_;
    int64_t most_passes_ = std::numeric_limits<int64_t>::max();
    // Searches keep flows and messages. Each example is searched by one thread at a time.
    mutable std::vector<std::unique_ptr<GraphSearch>> searches_;
    mutable std::vector<double> shortfalls_;
    mutable std::atomic<int64_t> n_open_{0};
    mutable std::array<std::atomic<int64_t>, n_graph_methods> n_searches_{};
};

}  // namespace maxmargin
