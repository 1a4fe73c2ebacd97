// Capacities of a maximum flow given for the first time or anew, what is kept of the flow found before, and the values of flow and cut.
//
// Any flow that is kept is only a start: what nodes then have too much or too little is their excess, and the next solve sees to it.
#include <algorithm>
#include <cmath>

#include "inference/extremes.hpp"
#include "inference/max_flow.hpp"

namespace maxmargin {

void MaxFlow::set_terminals(std::span<const double> source, std::span<const double> sink) {
    double through = 0.0, largest = 0.0;
    for (int64_t i = 0; i < n_nodes_; ++i) {
        largest = larger(largest, set_terminal(i, source[i] - sink[i]));
        through += std::min(source[i], sink[i]);
    }
    through_ = through;
    largest_terminal_ = largest;
}

void MaxFlow::set_terminals(std::span<const double> source_minus_sink) {
    double largest = 0.0;
    for (int64_t i = 0; i < n_nodes_; ++i) largest = larger(largest, set_terminal(i, source_minus_sink[i]));
    through_ = 0.0;
    largest_terminal_ = largest;
}

// Returns how much it is, with either sign.
inline double MaxFlow::set_terminal(int64_t node, double net) {
    if (net != source_minus_sink_[node]) nodes_[node].excess += net - source_minus_sink_[node];
    source_minus_sink_[node] = net;
    return std::abs(net);
}

// Edges keep their flow as far as they can carry it, but those from S to T stay saturated, since most of the cut is that of the next solve
// too: S stays closed, and what its border carries more or less is taken from the nodes there. It is not where an edge became so wide that
// what the nodes have would be lost in rounding.
void MaxFlow::set_edges(std::span<const double> forward, std::span<const double> backward) {
    if (!has_flow_) return set_first_edges(forward, backward);
    double largest = 0.0;
    for (size_t e = 0; e < forward_arc_.size(); ++e) {
        const double to_second = forward[e], to_first = backward[e];
        largest = larger(largest, larger(to_second, to_first));
        const auto [old_to_second, old_to_first] = capacity_[e];
        if (int(old_to_second == to_second) & int(old_to_first == to_first)) continue;
        Arc& arc = arcs_[forward_arc_[e]];
        Arc& back = arcs_[arc.sister()];
        const bool first_side = on_source_side(back.head), second_side = on_source_side(arc.head);
        // A saturated arc's flow is its capacity to the last bit; else a residual of the order of rounding would be left or made.
        const double flow = back.residual == 0.0 ? -old_to_first : old_to_second - arc.residual;
        const double least = first_side > second_side ? to_second : -to_first;
        const double most = first_side < second_side ? -to_first : to_second;
        double kept = -larger(-larger(flow, least), -most);
        if (kept != flow) {
            if (std::abs(kept - flow) > largest_terminal_ && flow >= -to_first && flow <= to_second) {
                kept = flow;
                forests_are_whole_ = false;  // S has an arc out
            }
            nodes_[back.head].excess += flow - kept;
            nodes_[arc.head].excess -= flow - kept;
        }
        set_residuals(arc, back, to_second - kept, to_first + kept);
        capacity_[e] = {to_second, to_first};
        edges_changed_ = true;
    }
    largest_edge_ = largest;
}

// Where nothing flows there is nothing to keep.
void MaxFlow::set_first_edges(std::span<const double> forward, std::span<const double> backward) {
    double largest = 0.0;
    for (size_t e = 0; e < forward_arc_.size(); ++e) {
        largest = larger(largest, larger(forward[e], backward[e]));
        capacity_[e] = {forward[e], backward[e]};
        Arc& arc = arcs_[forward_arc_[e]];
        set_residuals(arc, arcs_[arc.sister()], forward[e], backward[e]);
    }
    largest_edge_ = largest;
}

void MaxFlow::forget_flow() {
    for (int64_t i = 0; i < n_nodes_; ++i) nodes_[i].excess = source_minus_sink_[i];
    for (size_t e = 0; e < forward_arc_.size(); ++e) {
        Arc& arc = arcs_[forward_arc_[e]];
        set_residuals(arc, arcs_[arc.sister()], capacity_[e][0], capacity_[e][1]);
    }
    has_flow_ = false;
    forests_are_whole_ = false;
    solves_since_forgotten_ = 0;
    largest_since_forgotten_ = 0.0;
}

double MaxFlow::flow_value() const {
    double value = through_;
    for (int64_t i = 0; i < n_nodes_; ++i) value += std::max(source_minus_sink_[i], 0.0) - std::max(nodes_[i].excess, 0.0);
    return value;
}

double MaxFlow::cut_value() const {
    double value = through_;
    for (int64_t i = 0; i < n_nodes_; ++i) value += std::max(on_source_side(i) ? -source_minus_sink_[i] : source_minus_sink_[i], 0.0);
    for (size_t e = 0; e < forward_arc_.size(); ++e) {
        const Arc& arc = arcs_[forward_arc_[e]];
        const bool first_side = on_source_side(arcs_[arc.sister()].head), second_side = on_source_side(arc.head);
        if (first_side != second_side) value += capacity_[e][first_side ? 0 : 1];
    }
    return value;
}

}  // namespace maxmargin
