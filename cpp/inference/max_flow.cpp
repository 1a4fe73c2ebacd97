#include "inference/max_flow.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "threads/parallel.hpp"

namespace maxmargin {

namespace {

constexpr int64_t most_solves = 1000;
constexpr double largest_decline = 100.0;
constexpr int64_t scans_per_heartbeat = 1024;
constexpr size_t largest_imbalance = 3;
constexpr int64_t nodes_per_counted = 16;

}  // namespace

MaxFlow::MaxFlow(int64_t n_nodes, std::span<const int32_t> first, std::span<const int32_t> second)
    : n_nodes_(n_nodes), nodes_(n_nodes + 1), arcs_(2 * first.size()), levels_(n_nodes), forward_arc_(first.size()), capacity_(first.size()), source_minus_sink_(n_nodes) {
    // Counting sort of the arcs by tail: first_arc counts, then says where each node's arcs end, then where they begin.
    for (size_t e = 0; e < first.size(); ++e) {
        ++nodes_[first[e]].first_arc;
        ++nodes_[second[e]].first_arc;
    }
    uint32_t end = 0;
    for (Node& node : nodes_) {
        end += node.first_arc;
        node.first_arc = end;
    }
    for (size_t e = first.size(); e-- > 0;) {
        const uint32_t forward = --nodes_[first[e]].first_arc, backward = --nodes_[second[e]].first_arc;
        arcs_[forward] = {0.0, second[e], backward << 1};
        arcs_[backward] = {0.0, first[e], forward << 1};
        forward_arc_[e] = forward;
    }
}

// Every sum rounds, by as much as the largest numbers that ever took part in it; a flow that is too old or was made of much larger
// capacities is not worth keeping.
void MaxFlow::forget_worn_flow() {
    const double largest = std::max(largest_terminal_, largest_edge_);
    if (solves_since_forgotten_ >= most_solves || largest_since_forgotten_ > largest_decline * largest) forget_flow();
    largest_since_forgotten_ = std::max(largest_since_forgotten_, largest);
    ++solves_since_forgotten_;
}

void MaxFlow::solve() {
    forget_worn_flow();
    has_flow_ = true;
    // Until this solve has ended, an interruption leaves forests that are of no use.
    if (!std::exchange(forests_are_whole_, false) || !repair_forests()) plant_roots();
    edges_changed_ = false;
    while (!frontiers_[source_side].nodes.empty()) {
        if (meets_nothing() && outside_is_smaller()) grow_from_outside();
        else if (sink_is_next()) grow<sink_side>();
        else grow<source_side>();
        if (orphans_left_ < 0) plant_roots();
    }
    forests_are_whole_ = true;
}

// The forest whose last level is lower, which keeps paths short; but not one that has so many more nodes to scan. Where edges are weak, all
// nodes are roots, and one forest grows into the few places that the other leaves without looking at that one's roots at all.
bool MaxFlow::sink_is_next() const {
    const Frontier &from_source = frontiers_[source_side], &from_sink = frontiers_[sink_side];
    const size_t n_source = from_source.nodes.size(), n_sink = from_sink.nodes.size();
    if (n_sink == 0 || n_sink > largest_imbalance * n_source) return false;
    return from_sink.level < from_source.level || n_source > largest_imbalance * n_sink;
}

// Without a frontier T grows no more, and S meets nothing: it is only completed, to give the smallest source side. (In forests made ready for
// another solve, T may stand there without having been scanned.)
bool MaxFlow::meets_nothing() const { return levels_are_distances_ && frontiers_[sink_side].nodes.empty(); }

// Whether fewer nodes are outside the forests than at the last level of S; not asked where that is small.
bool MaxFlow::outside_is_smaller() const {
    const int64_t size = frontiers_[source_side].nodes.size();
    return size > n_nodes_ / nodes_per_counted && std::count(levels_.begin(), levels_.end(), 0) < size;
}

// Gives the node a place at the level where a node of S below it carries to it.
bool MaxFlow::take_into_source(int32_t index, int32_t level) {
    const uint32_t end = nodes_[index + 1].first_arc;
    for (uint32_t a = nodes_[index].first_arc; a < end; ++a) {
        const int32_t other = levels_[arcs_[a].head];
        if (int(other <= 0) | int(other >= level) | int(!carries_to_child<source_side>(arcs_[a]))) continue;
        place<source_side>(index, a, level);
        return true;
    }
    return false;
}

// What grow() does for S where it meets nothing, by a look at the nodes outside.
void MaxFlow::grow_from_outside() {
    const int32_t next_level = frontiers_[source_side].level + 1;
    for (int32_t i = 0; i < n_nodes_; ++i)
        if (levels_[i] == 0) take_into_source(i, next_level);
    frontiers_[source_side].advance();
}

void MaxFlow::clear_forests() {
    for (Frontier& frontier : frontiers_) {
        frontier.level = 1;
        frontier.nodes.clear();
        frontier.next.clear();
    }
    for (auto& nodes : loose_) nodes.clear();
}

// Any pseudoflow may be the start, and a good one leaves few roots. Node after node, excess and deficit move to later neighbours, where they
// meet what others left; what cannot move makes a root, since nothing comes from later nodes.
void MaxFlow::plant_roots() {
    clear_forests();
    levels_are_distances_ = true;
    orphans_left_ = std::numeric_limits<int64_t>::max();
    for (int32_t i = 0; i < n_nodes_; ++i) {
        if (nodes_[i].excess != 0.0) {
            if (nodes_[i].excess > 0.0) give_to_later<source_side>(i);
            else give_to_later<sink_side>(i);
        }
        const double excess = nodes_[i].excess;
        nodes_[i].parent = no_parent;
        levels_[i] = (excess > 0.0) - (excess < 0.0);
        if (levels_[i] != 0) frontiers_[levels_[i] > 0 ? source_side : sink_side].nodes.push_back(i);
    }
}

// Cancels what the node has along single arcs; the rest moves if it can move whole, along the widest arc. Where edges are strong, sums of many
// nodes cancel; where they are weak, little moves.
template <MaxFlow::Side side>
void MaxFlow::give_to_later(int32_t index) {
    constexpr double sign = side == source_side ? 1.0 : -1.0;
    double amount = sign * nodes_[index].excess;
    uint32_t widest = no_parent;
    double width = 0.0;
    const uint32_t end = nodes_[index + 1].first_arc;
    for (uint32_t a = nodes_[index].first_arc; a < end && amount > 0.0; ++a) {
        if (int(arcs_[a].head < index) | int(!carries_from_parent<side>(arcs_[a]))) continue;
        const uint32_t outward = side == source_side ? a : arcs_[a].sister();
        double& other = nodes_[arcs_[a].head].excess;
        if (sign * other < 0.0) {
            const double cancelled = std::min({amount, -sign * other, arcs_[outward].residual});
            push(outward, cancelled);
            amount -= cancelled;
            other += sign * cancelled;
        }
        if (arcs_[outward].residual > width) {
            width = arcs_[outward].residual;
            widest = a;
        }
    }
    if (amount > 0.0 && width >= amount) {
        push(side == source_side ? widest : arcs_[widest].sister(), amount);
        nodes_[arcs_[widest].head].excess += sign * amount;
        amount = 0.0;
    }
    nodes_[index].excess = sign * amount;
}

void MaxFlow::Frontier::advance() {
    nodes.swap(next);
    next.clear();
    ++level;
}

// Scans the last level, and again what is placed there anew.
template <MaxFlow::Side side>
void MaxFlow::grow() {
    constexpr Side other = side == source_side ? sink_side : source_side;
    Frontier& frontier = frontiers_[side];
    for (size_t k = 0; k < frontier.nodes.size() && orphans_left_ >= 0;) {
        for (; k < frontier.nodes.size(); ++k) {
            if (k % scans_per_heartbeat == 0) heartbeat();
            if (height<side>(frontier.nodes[k]) == frontier.level) scan<side>(frontier.nodes[k], frontier.level + 1);
        }
        // Only where levels are distances has no node of T that could stay in T an arc from a node of S that was scanned.
        if (!levels_are_distances_) take_into_source(loose_[sink_side], frontiers_[source_side].level + (side == source_side));
        place_loose_nodes<other>(frontiers_[other].level);
        // What has no place in the other forest may have one next to the level just scanned.
        for (const int32_t index : loose_[other]) nodes_[index].parent = loose(side, 0);
        loose_[side].insert(loose_[side].end(), loose_[other].begin(), loose_[other].end());
        loose_[other].clear();
        place_loose_nodes<side>(frontier.level + 1);
        for (const int32_t index : loose_[side]) nodes_[index].parent = no_parent;
        loose_[side].clear();
    }
    frontier.advance();
}

template <MaxFlow::Side side>
void MaxFlow::scan(int32_t index, int32_t next_level) {
    const int32_t level = levels_[index];
    const uint32_t end = nodes_[index + 1].first_arc;
    for (uint32_t a = nodes_[index].first_arc; a < end;) {
        const Arc& arc = arcs_[a];
        const int32_t other = height<side>(arc.head);
        // One branch that is nearly always taken, not two that are half the time; so also below.
        if (int(other > 0) | int(!carries_from_parent<side>(arc))) {
            ++a;
        } else if (other < 0) {
            // The other forest. The arc is looked at again: it may have capacity left, and the other node another place.
            augment(side == source_side ? a : arc.sister());
            if (levels_[index] != level) return;
        } else {
            if (nodes_[arc.head].parent == no_parent) place<side>(arc.head, arc.sister(), next_level);
            ++a;
        }
    }
}

// Sends what fits along the path through the arc, which leads from S to T.
void MaxFlow::augment(uint32_t a) {
    const int32_t head = arcs_[a].head, tail = arcs_[arcs_[a].sister()].head;
    const double amount = narrowest<sink_side>(head, narrowest<source_side>(tail, arcs_[a].residual));
    push(a, amount);
    send<source_side>(tail, amount);
    send<sink_side>(head, amount);
    adopt<source_side>();
    adopt<sink_side>();
}

template <MaxFlow::Side side>
double MaxFlow::narrowest(int32_t index, double amount) const {
    const Node* node = &nodes_[index];
    while (node->parent != no_parent) {
        const Arc& up = arcs_[node->parent];
        amount = std::min(amount, side == source_side ? arcs_[up.sister()].residual : up.residual);
        node = &nodes_[up.head];
    }
    return std::min(amount, side == source_side ? node->excess : -node->excess);
}

// The narrowest place loses exactly what it has, so that at least one arc or root is used up to the last bit.
void MaxFlow::push(uint32_t a, double amount) {
    Arc& arc = arcs_[a];
    Arc& back = arcs_[arc.sister()];
    arc.residual -= amount;
    back.residual += amount;
    arc.set_sister_is_residual(true);
    if (arc.residual == 0.0) back.set_sister_is_residual(false);
}

template <MaxFlow::Side side>
void MaxFlow::send(int32_t index, double amount) {
    for (uint32_t up = nodes_[index].parent; up != no_parent; up = nodes_[index].parent) {
        const uint32_t used = side == source_side ? arcs_[up].sister() : up;
        push(used, amount);
        if (arcs_[used].residual == 0.0) make_orphan<side>(index);
        index = arcs_[up].head;
    }
    nodes_[index].excess += side == source_side ? -amount : amount;
    if (nodes_[index].excess == 0.0) make_orphan<side>(index);
}

void MaxFlow::ByLevel::add(int32_t node, int32_t level) {
    if (static_cast<size_t>(level) >= at.size()) at.resize(level + 1);
    if (is_empty()) lowest = highest = level;
    lowest = std::min(lowest, level);
    highest = std::max(highest, level);
    at[level].push_back(node);
}

void MaxFlow::ByLevel::clear() {
    for (; lowest <= highest; ++lowest) at[lowest].clear();
}

template <MaxFlow::Side side>
void MaxFlow::make_orphan(int32_t index) {
    --orphans_left_;
    nodes_[index].parent = lost_parent;
    orphans_[side].add(index, height<side>(index));
}

// Lowest levels first: when a node looks for a parent below, all orphans there have found theirs or are loose.
template <MaxFlow::Side side>
void MaxFlow::adopt() {
    ByLevel& orphans = orphans_[side];
    for (; !orphans.is_empty(); ++orphans.lowest) {
        // Children that become orphans are higher, and may move the list of lists but not this one's end.
        for (size_t k = 0; k < orphans.at[orphans.lowest].size(); ++k) find_parent<side>(orphans.at[orphans.lowest][k]);
        orphans.at[orphans.lowest].clear();
    }
}

// A parent at a level below (the one below, where levels are distances); without one the node is loose and its children are orphans.
template <MaxFlow::Side side>
void MaxFlow::find_parent(int32_t index) {
    const int32_t level = height<side>(index);
    const uint32_t begin = nodes_[index].first_arc, end = nodes_[index + 1].first_arc;
    bool has_children = false;
    for (uint32_t a = begin; a < end; ++a) {
        const int32_t other = height<side>(arcs_[a].head);
        if (int(other > 0) & int(other < level) & int(carries_to_child<side>(arcs_[a]))) {
            nodes_[index].parent = a;
            return;
        }
        has_children |= other > level;
    }
    levels_[index] = 0;
    nodes_[index].parent = loose(side, level);
    loose_[side].push_back(index);
    if (!has_children) return;
    for (uint32_t a = begin; a < end; ++a)
        if (height<side>(arcs_[a].head) > level && nodes_[arcs_[a].head].parent == arcs_[a].sister()) make_orphan<side>(arcs_[a].head);
}

// Breadth-first search from the nodes that kept their place, up to the highest level allowed; what it does not reach stays loose.
template <MaxFlow::Side side>
void MaxFlow::place_loose_nodes(int32_t highest) {
    std::vector<int32_t>& nodes = loose_[side];
    if (nodes.empty()) return;
    if (placed_at_.size() <= static_cast<size_t>(highest)) placed_at_.resize(highest + 1);
    int32_t begin = highest;
    for (const int32_t index : nodes) {
        int32_t lowest = highest;
        uint32_t parent = no_parent;
        const uint32_t end = nodes_[index + 1].first_arc;
        for (uint32_t a = nodes_[index].first_arc; a < end; ++a) {
            const int32_t other = height<side>(arcs_[a].head);
            if (int(other <= 0) | int(other >= lowest) | int(!carries_to_child<side>(arcs_[a]))) continue;
            lowest = other;
            parent = a;
        }
        if (parent == no_parent) continue;
        const int32_t level = std::max(lowest + 1, lowest_place(nodes_[index].parent));
        placed_at_[level].push_back({index, parent});
        begin = std::min(begin, level);
    }
    for (int32_t level = begin; level <= highest; ++level) {
        // The whole level before any of the next: a node may stand beside both.
        for (const auto [index, parent] : placed_at_[level])
            if (levels_[index] == 0) place<side>(index, parent, level);
        if (level < highest)
            for (const auto [index, parent] : placed_at_[level])
                if (nodes_[index].parent == parent) place_neighbours<side>(index, level + 1);
        placed_at_[level].clear();
    }
    std::erase_if(nodes, [&](int32_t index) { return levels_[index] != 0; });
}

template <MaxFlow::Side side>
void MaxFlow::place_neighbours(int32_t index, int32_t level) {
    const uint32_t end = nodes_[index + 1].first_arc;
    for (uint32_t a = nodes_[index].first_arc; a < end; ++a) {
        const Arc& arc = arcs_[a];
        if (int(levels_[arc.head] != 0) | int(!carries_from_parent<side>(arc)) || !is_loose(side, nodes_[arc.head].parent)) continue;
        const int32_t own = std::max(level, lowest_place(nodes_[arc.head].parent));
        if (own == level) place<side>(arc.head, arc.sister(), level);
        placed_at_[own].push_back({arc.head, arc.sister()});
    }
}

template <MaxFlow::Side side>
void MaxFlow::place(int32_t index, uint32_t parent, int32_t level) {
    nodes_[index].parent = parent;
    levels_[index] = side == source_side ? level : -level;
    Frontier& frontier = frontiers_[side];
    if (level >= frontier.level) (level == frontier.level ? frontier.nodes : frontier.next).push_back(index);
}

template void MaxFlow::scan<MaxFlow::source_side>(int32_t, int32_t);
template void MaxFlow::make_orphan<MaxFlow::source_side>(int32_t);
template void MaxFlow::make_orphan<MaxFlow::sink_side>(int32_t);
template void MaxFlow::adopt<MaxFlow::source_side>();
template void MaxFlow::adopt<MaxFlow::sink_side>();
template void MaxFlow::place_loose_nodes<MaxFlow::source_side>(int32_t);
template void MaxFlow::place_loose_nodes<MaxFlow::sink_side>(int32_t);
template void MaxFlow::place<MaxFlow::source_side>(int32_t, uint32_t, int32_t);
template void MaxFlow::place<MaxFlow::sink_side>(int32_t, uint32_t, int32_t);

}  // namespace maxmargin
