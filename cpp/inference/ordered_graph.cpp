#include "inference/ordered_graph.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace maxmargin {

OrderedGraph::OrderedGraph(const GraphShape& shape, const PairLinks& all_links, std::vector<int32_t> ordered_nodes)
    : nodes(std::move(ordered_nodes)), label_begin(nodes.size() + 1, 0), up_begin(nodes.size() + 1, 0), down_begin(nodes.size() + 1, 0) {
    std::vector<int32_t> place(shape.n_nodes, -1);
    for (int64_t p = 0; p < n_nodes(); ++p) {
        place[nodes[p]] = static_cast<int32_t>(p);
        label_begin[p + 1] = label_begin[p] + shape.n_labels(nodes[p]);
    }
    for (int64_t l = 0; l < all_links.size(); ++l) {
        const int32_t first = place[all_links.first(l)], second = place[all_links.second(l)];
        if (first >= 0 && second >= 0) links.push_back({std::min(first, second), std::max(first, second), l, first < second});
    }
    std::sort(links.begin(), links.end(), [](const Link& a, const Link& b) { return std::tie(a.low, a.high) < std::tie(b.low, b.high); });

    for (const Link& link : links) {
        ++up_begin[link.low + 1];
        ++down_begin[link.high + 1];
    }
    std::partial_sum(up_begin.begin(), up_begin.end(), up_begin.begin());
    std::partial_sum(down_begin.begin(), down_begin.end(), down_begin.begin());
    down.resize(links.size());
    std::vector<int64_t> next(down_begin.begin(), down_begin.end() - 1);
    for (size_t l = 0; l < links.size(); ++l) down[next[links[l].high]++] = static_cast<int64_t>(l);

    for (int64_t p = 0; p < n_nodes(); ++p) {
        const int64_t up = up_begin[p + 1] - up_begin[p], below = down_begin[p + 1] - down_begin[p];
        const int64_t n_chains = std::max({up, below, int64_t{1}});
        share.push_back(1.0 / static_cast<double>(n_chains));
        n_beginning.push_back(static_cast<double>(n_chains - below));
    }
}

}  // namespace maxmargin
