// The best labelling of a graph whose nodes have one or two labels and whose edges like agreement, by one minimum cut:
//
//     max_y  Σ_i unary_i(y_i) + Σ_e pair_e(y_first(e), y_second(e)),     pair_e(0,0) + pair_e(1,1) ≥ pair_e(0,1) + pair_e(1,0)
//
// A node is on the source's side of the cut if its label is 1. With w = pair(0,0) + pair(1,1) − pair(0,1) − pair(1,0),
//
//     pair(y, z) = pair(0,0) + a·y + b·z − (w/2)·[y ≠ z],   a = pair(1,0) − pair(0,0) + w/2,   b = pair(0,1) − pair(0,0) + w/2
//
// (Kolmogorov and Zabih 2004, theorem 4.1, with the penalty shared by both directions), so that w/2 is the edge's capacity either way and
// what label 1 gains at a node, unary(1) − unary(0) plus the a and b of its edges, is its capacity from the source if positive, to the
// sink if negative. The flow is kept between calls: after a change of scores only what changed is solved again.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "inference/max_flow.hpp"
#include "inference/pairwise.hpp"
#include "inference/search.hpp"

namespace maxmargin {

class GraphCut {
  public:
    // Copies the shape. Throws std::invalid_argument where a node has more than two labels. All scores are 0.
    explicit GraphCut(const GraphShape& shape);
    GraphCut(const GraphCut&) = delete;
    GraphCut& operator=(const GraphCut&) = delete;

    const GraphShape& shape() const { return shape_; }

    // Finite scores in the order of label_offsets.
    void set_unary_scores(std::span<const double> unary);
    // Finite scores. Throws std::invalid_argument at the first edge that likes disagreement, and then changes nothing.
    void set_pair_scores(const PairScores& pairs);
    // The next solve starts without a flow.
    void forget_flow();

    // The best labels; of all best labellings the one with the fewest ones, up to rounding. Returns its score, summed over the scores as given.
    double solve(std::span<int32_t> labels);
    // After solve(), for nodes with two labels: how much less labellings with the other one at the node score (see MaxFlow).
    double cost_of_switching(int64_t node, double enough, int64_t& work) { return flow_.cost_of_switching(node, enough, work); }
    double cost_of_switching_alone(int64_t node) const { return flow_.cost_of_switching_alone(node); }

  private:
    // The two by two scores of an edge; labels a node does not have score as its only one.
    struct Table {
        double of[2][2];
    };
    static GraphShape checked(const GraphShape& shape);
    void set_potts_scores(const double* values);
    void set_tables(const PairScores& pairs);
    Table table_of(int64_t edge, const PairScores& pairs) const;
    static double agreement(const Table& table);
    void check_agreement(int64_t edge, const Table& table) const;
    double score_of(std::span<const int32_t> labels) const;

    std::vector<int64_t> label_offsets_;
    std::vector<int32_t> first_, second_;
    GraphShape shape_;
    MaxFlow flow_;
    std::vector<double> unary_;
    bool has_two_labels_;            // all nodes
    std::vector<Table> tables_;      // of each edge; none where its capacity is what agreement scores, and disagreement 0
    std::vector<double> capacity_;   // of each edge, either way
    std::vector<double> edge_gain_;  // of label 1 at each node, from its edges
    std::vector<double> gain_;       // … and in all
};

// For searches with changing unary scores. A node that has a forbidden label gains by the other one more than its edges can make up for,
// whatever that one scores.
class GraphCutSearch final : public LabellingSearch {
  public:
    GraphCutSearch(const GraphShape& shape, const PairScores& pairs);
    Found best(const double* unary, int32_t* labels) override;
    bool has_max_marginals() const override { return true; }
    void max_marginals(const double* unary, double* out) override;
    Rival second_best(const GraphShape& shape, const double* unary, const int32_t* labels) override;

  private:
    // Costs of switching the nodes of the best labelling, by the flow around each as long as that takes less work than a search would, and else
    // by searches.
    class Switches;

    GraphCut cut_;
    PairScores pairs_;
    std::vector<double> reach_;  // of each node's edges
    double largest_gain_ = 0.0;  // of one label over the other, in all searches
    std::vector<double> softened_;
};

}  // namespace maxmargin
