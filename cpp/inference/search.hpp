// One way to find the best labelling of a graph whose unary scores change between calls. Whatever asks for several labellings
// (the M best, diverse ones) is written over this.
#pragma once

#include <cstdint>

#include "inference/pairwise.hpp"

namespace maxmargin {

struct Found {
    double score = 0.0;  // of the labelling, with the unary scores of the call
    double bound = 0.0;  // no labelling scores more
    bool is_exact = false;  // the labelling is best, up to rounding or the tolerance asked for
};

// A labelling that another one is compared with: its score, a node at which it differs, and its label there.
struct Rival {
    double score;
    int32_t node = -1, label = -1;  // −1 where there is none
};

class LabellingSearch {
   public:
    virtual ~LabellingSearch() = default;

    // Unary scores of −∞ forbid labels; each node has one label at least that is not forbidden.
    virtual Found best(const double* unary, int32_t* labels) = 0;
    // A search that may end, with any labels and not as exact, once its bound tells that no labelling scores more than `floor`; and early,
    // where it is brief.
    virtual Found best_above(double /*floor*/, bool /*is_brief*/, const double* unary, int32_t* labels) { return best(unary, labels); }

    virtual bool has_max_marginals() const { return false; }
    // Writes the best score of all labellings with y_i = a, for all labels a of all nodes i, laid out as the unary scores.
    virtual void max_marginals(const double* /*unary*/, double* /*out*/) {}
    // Without them, after a search: writes bounds of them at its scores, laid out alike, where it has any.
    virtual void bound_max_marginals(double* /*out*/) {}
    // With max-marginals only: the second best labelling, where `labels` are the best.
    virtual Rival second_best(const GraphShape& shape, const double* unary, const int32_t* labels);
};

}  // namespace maxmargin
