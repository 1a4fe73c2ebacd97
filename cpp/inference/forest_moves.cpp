#include "inference/forest_moves.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "inference/messages.hpp"
#include "inference/pace.hpp"

namespace maxmargin {

namespace {

constexpr int most_forests = 4;
// Far more than there are gains; but where large scores cancel, what they round to may look like gains for ever.
constexpr size_t most_rounds = 100;
// What sums of many scores lose, as a share of them: less is no gain.
constexpr double rounding = 1e-12;

// Trees that nodes join, by which two nodes of one tree are told.
class Trees {
   public:
    explicit Trees(int64_t n_nodes) : parent_(n_nodes) { std::iota(parent_.begin(), parent_.end(), 0); }
    int32_t root(int32_t node) {
        while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
        return node;
    }
    void join(int32_t node, int32_t other) { parent_[root(other)] = root(node); }

   private:
    std::vector<int32_t> parent_;
};

// Nodes that make a forest, taken in this order: all but those that would close a cycle.
std::vector<char> grow_forest(const PairLinks& links, const std::vector<int32_t>& order) {
    const auto& begin = links.incident_begin();
    std::vector<char> is_member(order.size(), 0);
    std::vector<int32_t> roots;
    Trees trees(static_cast<int64_t>(order.size()));
    for (const int32_t node : order) {
        roots.clear();
        for (int64_t k = begin[node]; k < begin[node + 1]; ++k) {
            const int32_t neighbour = links.other(links.incident()[k], node);
            if (is_member[neighbour]) roots.push_back(trees.root(neighbour));
        }
        std::sort(roots.begin(), roots.end());
        if (std::adjacent_find(roots.begin(), roots.end()) != roots.end()) continue;
        is_member[node] = 1;
        for (const int32_t root : roots) trees.join(node, root);
    }
    return is_member;
}

}  // namespace

// Each forest begins with nodes that no other has, and then takes what else has a place: the more nodes, the more a move can do.
ForestMoves::ForestMoves(const GraphShape& shape, const PairLinks& links) : scores_(shape.label_offsets[shape.n_nodes]) {
    std::vector<int32_t> order(shape.n_nodes);
    std::iota(order.begin(), order.end(), 0);
    std::vector<char> is_covered(shape.n_nodes, 0);
    int64_t n_left = shape.n_nodes;
    while (n_left > 0 && forests_.size() < most_forests) {
        const std::vector<char> is_member = grow_forest(links, order);
        forests_.push_back({Leaves(shape, links, is_member), {}});
        for (int64_t l = 0; l < links.size(); ++l) {
            const int32_t inside = is_member[links.first(l)] ? links.first(l) : links.second(l), outside = links.other(l, inside);
            if (is_member[inside] && !is_member[outside]) forests_.back().outward.push_back({l, inside, outside});
        }
        for (int64_t i = 0; i < shape.n_nodes; ++i) is_covered[i] |= is_member[i];
        n_left = std::stable_partition(order.begin(), order.end(), [&](int32_t node) { return !is_covered[node]; }) - order.begin();
    }
    single_.assign(order.begin(), order.begin() + n_left);
}

void ForestMoves::improve(const GraphShape& shape, const PairLinks& links, const double* unary, const std::function<bool()>& is_over, std::vector<int32_t>& labels) {
    // A forest is moved again only after another move changed something, single nodes also after their own.
    const size_t n_moves = forests_.size() + !single_.empty();
    size_t n_in_vain = 0, n_made = 0;
    for (size_t k = 0; n_in_vain < n_moves && n_made < most_rounds * n_moves && !is_over(); k = (k + 1) % n_moves, ++n_made) {
        if (k < forests_.size()) n_in_vain = move(forests_[k], shape, links, unary, labels) ? 1 : n_in_vain + 1;
        else n_in_vain = move_single_nodes(shape, links, unary, labels) ? 0 : n_in_vain + 1;
    }
}

bool ForestMoves::move(const Forest& forest, const GraphShape& shape, const PairLinks& links, const double* unary, std::vector<int32_t>& labels) {
    const int64_t* offsets = shape.label_offsets;
    for (const auto& leaf : forest.trees.leaves()) std::copy(unary + offsets[leaf.node], unary + offsets[leaf.node + 1], scores_.begin() + offsets[leaf.node]);
    for (const auto [link, inside, outside] : forest.outward) add_given(links.scores(link), toward(links, link, inside), labels[outside], scores_.data() + offsets[inside]);
    const double before = forest.trees.score(shape, links, scores_.data(), labels.data());
    const double best = forest.trees.eliminate(shape, links, scores_.data());
    if (!(best - before > rounding * std::abs(best))) return false;
    forest.trees.extend(shape, links, scores_.data(), labels.data());
    return true;
}

bool ForestMoves::move_single_nodes(const GraphShape& shape, const PairLinks& links, const double* unary, std::vector<int32_t>& labels) {
    const auto& begin = links.incident_begin();
    bool has_moved = false;
    Pace pace;
    for (const int32_t node : single_) {
        const int n = shape.n_labels(node);
        std::copy_n(unary + shape.label_offsets[node], n, scores_.begin());
        for (int64_t k = begin[node]; k < begin[node + 1]; ++k) {
            const int64_t link = links.incident()[k];
            add_given(links.scores(link), toward(links, link, node), labels[links.other(link, node)], scores_.data());
        }
        pace.work(n * (begin[node + 1] - begin[node]));
        const int best = best_label(scores_.data(), n);
        if (!(scores_[best] - scores_[labels[node]] > rounding * std::abs(scores_[best]))) continue;
        labels[node] = best;
        has_moved = true;
    }
    return has_moved;
}

}  // namespace maxmargin
