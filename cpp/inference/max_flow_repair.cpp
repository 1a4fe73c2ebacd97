// Forests of one solve made ready for the next one (after Kohli and Torr 2007, section 4, who keep the trees of Boykov and Kolmogorov).
//
// When a solve ends, S is closed: no residual arc leaves it, and none does when capacities change (max_flow_capacities.cpp). They do three things:
//
//   a node of S has an excess now       it is a root, at the level where it stands
//   a node of S has a deficit now       it asks its parent for what it lacks, the parent asks its own, highest levels first
//   an arc to a parent is used up       the node is an orphan and looks for a parent, as after any augmentation
//
// and the same in T with signs turned. Orphans that found a parent ask it again; those left without a place and still in deficit are
// roots of T. Levels rise along every path from a root, as before, but may rise by more than one and roots have any: they are
// no longer distances, and the bound on the number of steps does not hold. So only so many nodes may lose their parent;
// after that the flow as it is then, which is a good start since debts were paid along whole trees, gets new forests. That is also what is
// fastest: trees that fall apart take longer to mend than to grow. Under a change of all the large numbers even the paying takes too long.
#include <algorithm>
#include <cmath>

#include "inference/max_flow.hpp"

namespace maxmargin {

namespace {

// How many nodes may lose their parent (benchmarks/max_flow.py): to the changes themselves, to each poor node when it is cut off, which
// tells the size of its tree, and until the solve ends.
constexpr int64_t nodes_per_first_orphan = 8;
constexpr int64_t orphans_per_poor = 2;
constexpr int64_t nodes_per_second_orphan = 32;
constexpr int64_t nodes_per_orphan = 4;
constexpr int64_t fewest_orphans = 16;
// What nodes lack may be this share of the capacities from and to terminals, by a sample of the nodes. Beyond, as between most passes of
// training (benchmarks/max_flow_training.py), new forests on the kept flow are faster.
constexpr double largest_share_lacking = 0.02;
constexpr int64_t fewest_sampled = 256;
constexpr int64_t longest_stride = 16;

}  // namespace

bool MaxFlow::repair_forests() {
    if (changes_are_large()) return false;
    levels_are_distances_ = false;
    orphans_left_ = n_nodes_ / nodes_per_first_orphan + fewest_orphans;
    examine_all();
    settle_all();
    if (orphans_left_ < 0) return give_up_repair();
    const int64_t n_poor = poor_[source_side].size() + poor_[sink_side].size();
    orphans_left_ = orphans_per_poor * n_poor + n_nodes_ / nodes_per_second_orphan + fewest_orphans;
    adopt_all();
    if (orphans_left_ < 0) return give_up_repair();
    orphans_left_ = n_nodes_ / nodes_per_orphan + fewest_orphans;
    for (settle_all(); !orphans_[source_side].is_empty() || !orphans_[sink_side].is_empty(); settle_all()) {
        adopt_all();
        if (orphans_left_ < 0) return give_up_repair();
    }
    free_loose_nodes();
    return true;
}

bool MaxFlow::changes_are_large() const {
    const int64_t stride = std::clamp<int64_t>(n_nodes_ / fewest_sampled, 1, longest_stride);
    double lacking = 0.0, capacity = 0.0;
    for (int64_t i = 0; i < n_nodes_; i += stride) {
        const double excess = nodes_[i].excess;
        lacking += std::max(levels_[i] > 0 ? -excess : levels_[i] < 0 ? excess : 0.0, 0.0);
        capacity += std::abs(source_minus_sink_[i]);
    }
    return lacking > largest_share_lacking * capacity;
}

bool MaxFlow::give_up_repair() {
    for (const Side side : {source_side, sink_side}) {
        orphans_[side].clear();
        owing_[side].clear();
        poor_[side].clear();
        rich_[side].clear();
    }
    return false;
}

void MaxFlow::examine_all() {
    for (int32_t i = 0; i < n_nodes_; ++i) {
        if (levels_[i] > 0) {
            examine<source_side>(i);
        } else if (levels_[i] < 0) {
            examine<sink_side>(i);
        } else if (nodes_[i].excess != 0.0) {
            --orphans_left_;  // outside the forests, which end where S is whole
            plant_root(i);
        }
    }
}

void MaxFlow::settle_all() {
    settle<source_side>();
    settle<sink_side>();
}

void MaxFlow::adopt_all() {
    adopt_poor<source_side>();
    adopt_poor<sink_side>();
}

// At the last level, to be scanned.
void MaxFlow::plant_root(int32_t index) {
    if (nodes_[index].excess > 0.0) place<source_side>(index, no_parent, frontiers_[source_side].level);
    else place<sink_side>(index, no_parent, frontiers_[sink_side].level);
}

template <MaxFlow::Side side>
inline void MaxFlow::examine(int32_t index) {
    Node& node = nodes_[index];
    const double excess = side == source_side ? node.excess : -node.excess;
    if (node.parent != no_parent && edges_changed_ && !carries_to_child<side>(arcs_[node.parent])) node.parent = no_parent;
    if (excess > 0.0) {
        if (node.parent != no_parent) rich_[side].push_back(index);
    } else if (node.parent == no_parent) {
        make_orphan<side>(index);
        if (excess < 0.0) poor_[side].push_back(index);
    } else if (excess < 0.0) {
        owing_[side].add(index, height<side>(index));
    }
}

// Highest levels first, so that a node asks once for itself and for all that asked it.
template <MaxFlow::Side side>
void MaxFlow::settle() {
    ByLevel& owing = owing_[side];
    for (; !owing.is_empty(); --owing.highest) {
        const int32_t level = owing.highest;
        for (size_t k = 0; k < owing.at[level].size(); ++k) ask_parent<side>(owing.at[level][k]);
        owing.at[level].clear();
    }
    for (const int32_t index : rich_[side])
        if (nodes_[index].excess * (side == source_side ? 1.0 : -1.0) > 0.0) nodes_[index].parent = no_parent;
    rich_[side].clear();
}

template <MaxFlow::Side side>
void MaxFlow::ask_parent(int32_t index) {
    constexpr double sign = side == source_side ? 1.0 : -1.0;
    Node& node = nodes_[index];
    const Arc& up = arcs_[node.parent];
    const uint32_t used = side == source_side ? up.sister() : node.parent;
    const double amount = std::min(-sign * node.excess, arcs_[used].residual);
    push(used, amount);
    node.excess += sign * amount;
    if (arcs_[used].residual == 0.0) {
        make_orphan<side>(index);
        if (node.excess != 0.0) poor_[side].push_back(index);
    }
    Node& parent = nodes_[up.head];
    const double before = sign * parent.excess;
    parent.excess -= sign * amount;
    if (before < 0.0 || before > amount) return;  // it owes already, or can afford it
    if (parent.parent == no_parent) make_orphan<side>(up.head);
    if (before == amount) return;
    if (parent.parent == lost_parent) poor_[side].push_back(up.head);
    else owing_[side].add(up.head, height<side>(up.head));
}

// Orphans find a parent or another place; those in deficit then owe it, or stay loose and poor.
template <MaxFlow::Side side>
void MaxFlow::adopt_poor() {
    adopt<side>();
    place_loose_nodes<side>(frontiers_[side].level);
    std::erase_if(poor_[side], [&](int32_t index) {
        if (levels_[index] == 0) return false;
        owing_[side].add(index, height<side>(index));
        return true;
    });
}

// Loose nodes have no arc from S: every node of S that carried to one would have given it a place.
void MaxFlow::free_loose_nodes() {
    for (const Side side : {source_side, sink_side}) {
        for (const int32_t index : loose_[side]) {
            nodes_[index].parent = no_parent;
            if (nodes_[index].excess != 0.0) plant_root(index);
        }
        loose_[side].clear();
        poor_[side].clear();
    }
}

// Gives the nodes a place at the level where a node of S below it carries to them.
void MaxFlow::take_into_source(std::vector<int32_t>& nodes, int32_t level) {
    std::erase_if(nodes, [&](int32_t index) { return take_into_source(index, level); });
}

}  // namespace maxmargin
