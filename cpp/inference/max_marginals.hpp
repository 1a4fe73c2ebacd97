// How good the best labelling with a given label at a given node is.
#pragma once

#include "inference/pairwise.hpp"
#include "inference/search.hpp"

namespace maxmargin {

// Writes the best score of all labellings with y_i = a, for all labels a of all nodes i, laid out as the unary scores. The search's own
// max-marginals, where it has them, else a search for each label whose bound is not reached yet, with the others of its node
// forbidden (Kohli and Torr 2008, who do so by cuts that go on from the last flow). Returns whether all are exact;
// where not, some may be too low, but the highest of each node is always the best score found.
bool max_marginals(const GraphShape& shape, const double* unary, LabellingSearch& search, double* out);

}  // namespace maxmargin
