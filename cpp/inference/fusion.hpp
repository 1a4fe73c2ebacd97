// The best mix of two labellings, of one or the other label at each node, by one minimum cut (the fusion moves of Lempitsky, Rother, Roth and Blake 2010):
//
//     max over z ∈ {0, 1}ⁿ   the score of y,   y_i = kept_i where z_i = 0 and offered_i where z_i = 1
//
// It is exact where every edge likes the mixes of one labelling no less than those of both, pair(kept, kept) + pair(offered, offered) ≥ pair(kept,
// offered) + pair(offered, kept), and is then the problem of graph_cut.hpp. Where an edge does not, what it scores with both labels kept counts
// as so much more that the two sums are equal (Rother, Kumar, Kolmogorov and Blake 2005): that favours the labels kept, so that the mix found
// scores no less than they do, but it need not be the best.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "inference/max_flow.hpp"
#include "inference/pairwise.hpp"

namespace maxmargin {

class Fusion {
   public:
    // The shape must outlive the object.
    explicit Fusion(const GraphShape& shape);

    // The scores of both labels of each node are finite.
    void mix(std::span<const double> unary, const PairScores& pairs, std::span<const int32_t> kept, std::span<const int32_t> offered, std::span<int32_t> mixed);

   private:
    void add_edge(int64_t edge, const PairScores& pairs, std::span<const int32_t> kept, std::span<const int32_t> offered);

    const GraphShape& shape_;
    MaxFlow flow_;
    std::vector<double> gain_;      // of the label offered, at each node
    std::vector<double> capacity_;  // of each edge, either way
};

}  // namespace maxmargin
