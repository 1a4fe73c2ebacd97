// The largest flow from a source to a sink, and the smallest cut between them:
//
//     min over sets A of nodes   Σ_{i ∉ A} source_i + Σ_{i ∈ A} sink_i + Σ_{(i,j): i ∈ A, j ∉ A} capacity_ij
//
// Capacities are doubles ≥ 0, two for each edge and two for each node. They may be changed after a solve, upwards or downwards; the flow
// found is kept and the next solve starts from it, and where little changed from the forests of that solve (max_flow_repair.cpp).
//
// Incremental breadth-first search (Goldberg, Hed, Kaplan, Tarjan and Werneck 2011): a forest S of shortest residual paths from the
// source and a forest T of shortest residual paths to the sink grow by one level, mostly in turns; where they meet, flow is sent along a
// shortest path, and nodes cut off look for another parent at the same level. Those that find none wait until the level has been scanned, and
// are then placed anew, all in one breadth-first search (the paper places them after each path; together, a node is placed once a level, however
// often its tree is cut). Paths only get longer, so the number of steps is bounded by n and m alone, whatever the capacities: rounding cannot
// keep it going.
//
// Source and sink capacity of a node are one number, source − sink, since what both can carry flows through the node at once. What is left
// of it after some flow is the node's excess: > 0 is a root of S, < 0 a root of T. A capacity lowered below its flow gives the
// flow back, and leaves an excess at its tail and a deficit at its head (Kohli and Torr 2005, section 3: the energy is only rewritten).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "memory/large_pages.hpp"

namespace maxmargin {

class MaxFlow {
  public:
    // Edge e joins first[e] and second[e], two different nodes; all capacities are 0. At most 2³⁰ − 1 edges.
    MaxFlow(int64_t n_nodes, std::span<const int32_t> first, std::span<const int32_t> second);

    int64_t n_nodes() const { return n_nodes_; }
    int64_t n_edges() const { return static_cast<int64_t>(forward_arc_.size()); }

    // Capacities from the source and to the sink, of every node; finite and ≥ 0.
    void set_terminals(std::span<const double> source, std::span<const double> sink);
    // The same, where only source − sink of each node is known and both are as small as they can be.
    void set_terminals(std::span<const double> source_minus_sink);
    // Capacities from first to second and back, of every edge; finite and ≥ 0.
    void set_edges(std::span<const double> forward, std::span<const double> backward);
    // Forgets the flow, not the capacities.
    void forget_flow();

    // Finds a largest flow. Throws Interrupted if heartbeat() does; the flow so far is then kept.
    void solve();

    // After solve(): whether the node is on the source's side, which is the smallest there is: the nodes that residual arcs reach from
    // the source. A node that neither terminal reaches is on the sink's side.
    bool on_source_side(int64_t node) const { return levels_[node] > 0; }
    // The flow's value, from what leaves the source.
    double flow_value() const;
    // The cut's value, summed over the capacities; equal to the flow's but for rounding.
    double cut_value() const;
    // After solve(): by how much the smallest cut with the node on its other side is larger, or `enough` where it is at least that. Leaves the
    // flow as it is. The arcs looked at are taken from `work`; where that falls below 0 it is given up, and what is returned means nothing.
    double cost_of_switching(int64_t node, double enough, int64_t& work);
    // By how much the cut grows where this node alone changes its side.
    double cost_of_switching_alone(int64_t node) const;

  private:
    // Arcs of a node follow each other; `sister` is the arc the other way, shifted to make room for a bit that says whether that one has residual
    // capacity: a node that looks for a parent need not touch its neighbours' arcs.
    struct Arc {
        double residual = 0.0;
        int32_t head = 0;
        uint32_t sister_and_bit = 0;
        uint32_t sister() const { return sister_and_bit >> 1; }
        bool sister_is_residual() const { return sister_and_bit & 1u; }
        void set_sister_is_residual(bool residual_left) { sister_and_bit = (sister_and_bit & ~1u) | static_cast<uint32_t>(residual_left); }
    };
    static void set_residuals(Arc& one, Arc& other, double forward, double backward) {
        one.residual = forward;
        other.residual = backward;
        one.set_sister_is_residual(backward > 0.0);
        other.set_sister_is_residual(forward > 0.0);
    }
    struct Node {
        double excess = 0.0;
        uint32_t first_arc = 0;
        uint32_t parent = 0;  // the arc to the parent, or what stands in its place (max_flow.cpp)
    };
    // What stands in place of an arc to the parent; arcs are fewer than 2³¹.
    static constexpr uint32_t no_parent = ~uint32_t{0};  // in a root and outside the forests
    static constexpr uint32_t lost_parent = no_parent - 1;
    // The last level of a forest and its nodes, those yet to be scanned; and the nodes of the level after it.
    struct Frontier {
        int32_t level = 1;
        std::vector<int32_t> nodes, next;
        void advance();
    };
    // Nodes of one forest by level; empty where lowest > highest.
    struct ByLevel {
        std::vector<std::vector<int32_t>> at;
        int32_t lowest = 0, highest = -1;
        bool is_empty() const { return lowest > highest; }
        void add(int32_t node, int32_t level);
        void clear();
    };
    struct Placement {
        int32_t node;
        uint32_t parent;
    };
    // For max_flow_switch.cpp: a node passed by a search from another one, the arc that brings flow from it to the node before it, and which that is.
    struct Passed {
        int32_t node;
        uint32_t arc;
        int32_t before;
    };
    struct ChangedArc {
        uint32_t arc;
        double residual, of_sister;
    };
    struct ChangedExcess {
        int32_t node;
        double before;
    };
    enum Side { source_side = 0, sink_side = 1 };
    // A node that was in a forest at some level and is to be placed anew; not below that level, since above it it may not have been scanned.
    static constexpr uint32_t level_mask = (uint32_t{1} << 30) - 1;
    static uint32_t loose(Side side, int32_t level) { return (2u + side) << 30 | std::min(static_cast<uint32_t>(level), level_mask - 2); }
    static bool is_loose(Side side, uint32_t parent) { return parent >> 30 == 2u + side && parent < lost_parent; }
    static int32_t lowest_place(uint32_t loose_parent) { return static_cast<int32_t>(loose_parent & level_mask); }
    template <Side side>
    int32_t height(int32_t node) const { return side == source_side ? levels_[node] : -levels_[node]; }
    // Whether flow could go along the tree arc between an arc's tail and its head if the head were the tail's parent.
    template <Side side>
    static bool carries_to_child(const Arc& arc) { return side == source_side ? arc.sister_is_residual() : arc.residual > 0.0; }
    // … and if the tail were the head's parent.
    template <Side side>
    static bool carries_from_parent(const Arc& arc) { return side == source_side ? arc.residual > 0.0 : arc.sister_is_residual(); }

    // In max_flow_capacities.cpp:
    double set_terminal(int64_t node, double net);
    void set_first_edges(std::span<const double> forward, std::span<const double> backward);

    // In max_flow.cpp:
    void forget_worn_flow();
    bool sink_is_next() const;
    bool meets_nothing() const;
    bool outside_is_smaller() const;
    void grow_from_outside();
    bool take_into_source(int32_t node, int32_t level);
    void clear_forests();
    void plant_roots();
    template <Side side>
    void give_to_later(int32_t node);
    template <Side side>
    void grow();
    template <Side side>
    void scan(int32_t node, int32_t next_level);
    void augment(uint32_t arc);
    template <Side side>
    double narrowest(int32_t node, double amount) const;
    template <Side side>
    void send(int32_t node, double amount);
    void push(uint32_t arc, double amount);
    template <Side side>
    void make_orphan(int32_t node);
    template <Side side>
    void adopt();
    template <Side side>
    void find_parent(int32_t node);
    template <Side side>
    void place_loose_nodes(int32_t highest);
    template <Side side>
    void place(int32_t node, uint32_t parent, int32_t level);
    template <Side side>
    void place_neighbours(int32_t node, int32_t level);

    // In max_flow_repair.cpp:
    bool repair_forests();
    bool changes_are_large() const;
    bool give_up_repair();
    void examine_all();
    void settle_all();
    void adopt_all();
    void plant_root(int32_t node);
    template <Side side>
    void examine(int32_t node);
    template <Side side>
    void settle();
    template <Side side>
    void ask_parent(int32_t node);
    template <Side side>
    void adopt_poor();
    void free_loose_nodes();
    void take_into_source(std::vector<int32_t>& nodes, int32_t level);

    // In max_flow_switch.cpp:
    void undo_changes();
    template <Side side>
    double gather(int32_t target, double enough, int64_t& work);
    template <Side side>
    bool pass_from(int32_t target, int64_t& work);
    template <Side side>
    double move_on(const Passed& from);
    void change_excess(int32_t node, double amount);

    int64_t n_nodes_;
    std::vector<Node, LargePages<Node>> nodes_;  // and one more, where the last node's arcs end
    std::vector<Arc, LargePages<Arc>> arcs_;
    std::vector<int32_t> levels_;  // of each node: > 0 in S, < 0 in T, 0 in neither; roots have ±1. Apart from the rest, because it is read most
    std::vector<uint32_t> forward_arc_;                     // of each edge
    std::vector<std::array<double, 2>> capacity_;           // of each edge, forward and backward
    std::vector<double> source_minus_sink_;
    double through_ = 0.0;  // what flows from source to sink through single nodes
    double largest_terminal_ = 0.0, largest_edge_ = 0.0, largest_since_forgotten_ = 0.0;
    int64_t solves_since_forgotten_ = 0;
    std::array<Frontier, 2> frontiers_;
    std::array<ByLevel, 2> orphans_;
    std::array<std::vector<int32_t>, 2> loose_;    // nodes that found no parent at their level
    std::vector<std::vector<Placement>> placed_at_;  // the levels of the search that places them
    bool has_flow_ = false;           // a solve began since the flow was forgotten
    bool forests_are_whole_ = false;  // a solve ended and its forests are still there
    bool edges_changed_ = false;      // since then
    bool levels_are_distances_ = true;
    int64_t orphans_left_ = 0;  // what keeping the forests may still cost
    std::array<ByLevel, 2> owing_;                  // nodes of S with a deficit, of T with an excess
    std::array<std::vector<int32_t>, 2> poor_;      // those of them that lost their parent
    std::array<std::vector<int32_t>, 2> rich_;      // nodes of S with an excess, of T with a deficit, that are no roots yet
    std::vector<Passed> wave_;
    std::vector<int64_t> passed_at_;  // the last search that passed each node; none before the first
    int64_t n_waves_ = 0;
    std::vector<ChangedArc> changed_arcs_;  // to be undone, the last one first
    std::vector<ChangedExcess> changed_excesses_;
};

}  // namespace maxmargin
