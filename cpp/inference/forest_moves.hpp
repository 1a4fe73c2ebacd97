// Labellings of a graph with cycles made better by moves over forests (Hamze and de Freitas 2004 sample so):
//
//     max over the labels of F   Σ_{i ∈ F} unary_i(y_i) + Σ_{links with an end in F} link(y, y)      given the labels of all other nodes,
//
// F being nodes between which there is no cycle: exact by max-product, whatever the scores. A grid is covered by two or three such sets, each of
// most of its nodes; what sets of graphs with many links leave out moves node by node. At the end no move makes the labelling better.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "inference/leaves.hpp"
#include "inference/links.hpp"
#include "inference/pairwise.hpp"

namespace maxmargin {

class ForestMoves {
   public:
    ForestMoves(const GraphShape& shape, const PairLinks& links);

    // Unary scores of −∞ forbid labels, which the labels given do not have. Ends early where is_over() says so, which is asked between moves.
    void improve(const GraphShape& shape, const PairLinks& links, const double* unary, const std::function<bool()>& is_over, std::vector<int32_t>& labels);

   private:
    struct Outward {
        int64_t link;
        int32_t inside, outside;
    };
    struct Forest {
        Leaves trees;
        std::vector<Outward> outward;
    };
    bool move(const Forest& forest, const GraphShape& shape, const PairLinks& links, const double* unary, std::vector<int32_t>& labels);
    bool move_single_nodes(const GraphShape& shape, const PairLinks& links, const double* unary, std::vector<int32_t>& labels);

    std::vector<Forest> forests_;
    std::vector<int32_t> single_;  // nodes in none of them
    std::vector<double> scores_;
};

}  // namespace maxmargin
