// The core of a graph as TRW-S walks over it: nodes renumbered by their place in an order, links by their lower end.
//
// Every link belongs to one chain whose places ascend (the monotonic chains of Kolmogorov 2006). A node with u links
// up and d links down lies on max(u, d) chains, each of which has an equal share of the node's scores; u − d of them begin
// there if u > d, and d − u end there if d > u.
#pragma once

#include <cstdint>
#include <vector>

#include "inference/links.hpp"
#include "inference/pairwise.hpp"

namespace maxmargin {

struct OrderedGraph {
    struct Link {
        int32_t low, high;  // places
        int64_t link;       // number among the PairLinks
        bool low_is_first;
    };

    // Nodes in their order; links to any others are left out.
    OrderedGraph(const GraphShape& shape, const PairLinks& all_links, std::vector<int32_t> ordered_nodes);

    int64_t n_nodes() const { return static_cast<int64_t>(nodes.size()); }
    int n_labels(int64_t place) const { return static_cast<int>(label_begin[place + 1] - label_begin[place]); }

    std::vector<int32_t> nodes;        // by place
    std::vector<int64_t> label_begin;  // by place: where scores begin
    std::vector<Link> links;           // ascending by low, then high
    std::vector<int64_t> up_begin;     // links of which a place is the low end
    std::vector<int64_t> down_begin, down;  // numbers of those of which it is the high end
    std::vector<double> share;         // 1 / number of chains
    std::vector<double> n_beginning;   // chains whose lowest node this is
};

}  // namespace maxmargin
