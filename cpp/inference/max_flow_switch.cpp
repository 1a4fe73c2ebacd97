// What it costs to have a node on the other side of a minimum cut, which tells max-marginals (Kohli and Torr 2008).
//
// A node of S that must be on the sink's side is a sink of its own: the cut grows by what more can flow into it, its own excess and what
// residual arcs bring from elsewhere in S, which no residual arc leaves. Outside S the same with signs turned. It comes in waves: a
// breadth-first search from the node goes on until it has passed as much as the node's arcs could take, then what was passed moves towards
// the node, one arc after the other, the farthest first, as far as it can. That is along shortest paths, so that distances never fall
// (Goldberg and Tarjan 1988) and waves end, whatever the capacities. All is undone afterwards, from a list.
#include <algorithm>
#include <cmath>

#include "inference/max_flow.hpp"
#include "threads/parallel.hpp"

namespace maxmargin {

double MaxFlow::cost_of_switching(int64_t node, double enough, int64_t& work) {
    passed_at_.resize(n_nodes_, 0);
    // Also where a heartbeat throws.
    const struct Restored {
        MaxFlow& flow;
        ~Restored() { flow.undo_changes(); }
    } restored{*this};
    const auto target = static_cast<int32_t>(node);
    return on_source_side(node) ? gather<source_side>(target, enough, work) : gather<sink_side>(target, enough, work);
}

double MaxFlow::cost_of_switching_alone(int64_t node) const {
    const bool side = on_source_side(node);
    double cost = std::abs(nodes_[node].excess);
    for (uint32_t a = nodes_[node].first_arc; a < nodes_[node + 1].first_arc; ++a)
        if (on_source_side(arcs_[a].head) == side) cost += arcs_[side ? arcs_[a].sister() : a].residual;
    return cost;
}

void MaxFlow::undo_changes() {
    for (; !changed_excesses_.empty(); changed_excesses_.pop_back()) nodes_[changed_excesses_.back().node].excess = changed_excesses_.back().before;
    for (; !changed_arcs_.empty(); changed_arcs_.pop_back()) {
        const ChangedArc& last = changed_arcs_.back();
        Arc& arc = arcs_[last.arc];
        set_residuals(arc, arcs_[arc.sister()], last.residual, last.of_sister);
    }
}

template <MaxFlow::Side side>
double MaxFlow::gather(int32_t target, double enough, int64_t& work) {
    double gathered = side == source_side ? nodes_[target].excess : -nodes_[target].excess;
    while (gathered < enough && pass_from<side>(target, work) && work >= 0) {
        heartbeat();
        for (size_t k = wave_.size(); k-- > 1;) gathered += move_on<side>(wave_[k]);
    }
    return std::min(gathered, enough);
}

// Lists nodes of the target's side in the order of their distance to it; whether any of them has something that can move.
template <MaxFlow::Side side>
bool MaxFlow::pass_from(int32_t target, int64_t& work) {
    const auto carrying = [&](uint32_t a) { return side == source_side ? arcs_[a].sister() : a; };
    double wanted = 0.0, passed = 0.0;
    for (uint32_t a = nodes_[target].first_arc; a < nodes_[target + 1].first_arc; ++a)
        if (on_source_side(arcs_[a].head) == (side == source_side)) wanted += arcs_[carrying(a)].residual;
    wave_.assign(1, {target, no_parent, 0});
    passed_at_[target] = ++n_waves_;
    for (size_t k = 0; k < wave_.size() && passed < wanted; ++k) {
        const int32_t index = wave_[k].node;
        const uint32_t end = nodes_[index + 1].first_arc;
        work -= end - nodes_[index].first_arc;
        for (uint32_t a = nodes_[index].first_arc; a < end; ++a) {
            const int32_t other = arcs_[a].head;
            if (on_source_side(other) != (side == source_side) || passed_at_[other] == n_waves_ || !carries_to_child<side>(arcs_[a])) continue;
            passed_at_[other] = n_waves_;
            wave_.push_back({other, carrying(a), static_cast<int32_t>(k)});
            passed += std::max(0.0, side == source_side ? nodes_[other].excess : -nodes_[other].excess);
        }
    }
    return passed > 0.0;
}

// What a node has moves to the one before it in the wave; returns what comes to the target.
template <MaxFlow::Side side>
double MaxFlow::move_on(const Passed& from) {
    constexpr double sign = side == source_side ? 1.0 : -1.0;
    const double excess = sign * nodes_[from.node].excess;
    if (excess <= 0.0) return 0.0;
    const double amount = std::min(excess, arcs_[from.arc].residual);
    changed_arcs_.push_back({from.arc, arcs_[from.arc].residual, arcs_[arcs_[from.arc].sister()].residual});
    push(from.arc, amount);
    change_excess(from.node, -sign * amount);
    if (from.before == 0) return amount;
    change_excess(wave_[from.before].node, sign * amount);
    return 0.0;
}

void MaxFlow::change_excess(int32_t index, double amount) {
    changed_excesses_.push_back({index, nodes_[index].excess});
    nodes_[index].excess += amount;
}

}  // namespace maxmargin
