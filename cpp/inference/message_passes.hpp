// One forward and one backward pass of TRW-S over an ordered graph with monotonic chains (Kolmogorov 2006), for maximisation.
//
// M_ij(b) are the messages from i to j, s_i the share of a chain in node i, and
//
//     D_i(a) = θ_i(a) + Σ_j M_ji(a)                       over all neighbours j,
//     M_ij(b) ← max_a { s_i D_i(a) − M_ji(a) + θ_ij(a, b) }    for those j that come later in the pass.
//
// Any messages are a reparametrisation of the scores. After a backward pass every link between i < j satisfies
// max_b { s_j D_j(b) + θ_ij(a, b) − M_ij(b) − M_ji(a) } = 0 for all a, so a chain is worth what its lowest node is worth, and
//
//     bound = Σ_i (chains that begin at i) · s_i · max_a D_i(a).
//
// Messages are kept up to a constant each, the message to label 0, which is added to the bound instead. A message M_ji is read for the
// last time when M_ij is made, so there is one place in memory per link, for whichever of the two is needed next.
#pragma once

#include <cstdint>
#include <memory>

#include "inference/links.hpp"
#include "inference/ordered_graph.hpp"

namespace maxmargin {

class MessagePasses {
   public:
    virtual ~MessagePasses() = default;
    // Forgets all messages.
    virtual void reset() = 0;
    // The nodes' scores, laid out as graph.label_begin says, and those of the links; messages are kept.
    virtual void set_scores(const double* unary, const PairLinks& links) = 0;
    // Messages upward. On the way each node takes its best label given the labels of those below it, with the messages from
    // above standing for the rest (the paper's choice of a solution); of equally good labels the first. Returns the score of the labels.
    virtual double forward(int32_t* labels) = 0;
    // Messages downward. Returns the bound.
    virtual double backward() = 0;
    // D_i(a) − max_b D_i(b) as they were in the last backward pass when it came to i, laid out as graph.label_begin says. All chains
    // through i had s_i D_i then, up to constants, as the best they reach with each label of i, so that no labelling with y_i = a scores more
    // than this plus the bound before that pass, or any earlier one.
    virtual void shortfalls(double* out) const = 0;
};

// The graph must outlive the passes. Graphs whose nodes all have two labels get passes of their own.
std::unique_ptr<MessagePasses> make_passes(const OrderedGraph& graph);
std::unique_ptr<MessagePasses> make_two_label_passes(const OrderedGraph& graph);

}  // namespace maxmargin
