// Leaves of a graph, taken away one after the other until every node left has two neighbours or more.
//
// The best a leaf can add is a function of its neighbour's label alone, max_a θ_leaf(a) + link(a, b), so it can be added to the
// neighbour's own scores and the leaf be forgotten until the neighbour has its label. A forest is used up entirely; elsewhere
// the trees that hang on cycles go, and what is left, the core, is smaller.
#pragma once

#include <cstdint>
#include <vector>

#include "inference/links.hpp"
#include "inference/pairwise.hpp"

namespace maxmargin {

class Leaves {
   public:
    Leaves(const GraphShape& shape, const PairLinks& links);
    // Of the graph that some nodes and the links between them make; is_member has a number for every node, and 0 for those left out.
    Leaves(const GraphShape& shape, const PairLinks& links, const std::vector<char>& is_member);

    // Nodes of no tree, ascending.
    const std::vector<int32_t>& core() const { return core_; }
    bool is_forest() const { return core_.empty(); }

    // Adds to `scores` (unary scores, laid out as label_offsets says) what the leaves can reach; returns the sum of the best
    // scores of the trees that are used up. Messages, where not null, takes each leaf's message at message_begin(leaf number).
    double eliminate(const GraphShape& shape, const PairLinks& links, double* scores, double* messages = nullptr) const;

    // Labels the leaves after eliminate(), once the core has its labels. Of equally good labels the first is taken.
    void extend(const GraphShape& shape, const PairLinks& links, const double* scores, int32_t* labels) const;

    // What labels score in the trees, by scores as they are before eliminate().
    double score(const GraphShape& shape, const PairLinks& links, const double* scores, const int32_t* labels) const;

    // max_marginals(i, a) is the best score of all labellings with y_i = a. After eliminate() with messages; the scores are those it has left. For
    // the nodes of the core, `out` holds how much less than `best`, the best score of all, each label reaches; where that is a bound so are these.
    void max_marginals(const GraphShape& shape, const PairLinks& links, const double* scores, const double* messages, double best, double* out) const;
    int64_t message_size() const { return message_size_; }

    struct Leaf {
        int32_t node;
        int32_t neighbour;  // −1: the last of its tree
        int64_t link;
        int64_t message_begin;
    };
    // As they are taken.
    const std::vector<Leaf>& leaves() const { return leaves_; }

   private:
    std::vector<Leaf> leaves_;
    std::vector<int32_t> core_;
    int64_t message_size_ = 0;
    int most_labels_ = 0;
};

}  // namespace maxmargin
