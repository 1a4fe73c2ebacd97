// Several good labellings of one graph, over any search for the best one.
#pragma once

#include <cstdint>
#include <vector>

#include "inference/pairwise.hpp"
#include "inference/search.hpp"

namespace maxmargin {

struct Labellings {
    std::vector<int32_t> labels;  // one labelling after the other
    std::vector<double> scores;   // with the unary scores as given
    bool is_exact = true;         // no labelling left out scores more, up to the tolerance of the searches
};

// The n_best labellings with the highest scores, best first, or all where there are fewer.
//
// All labellings that are not listed yet are split into cells given by fixed and forbidden labels (Lawler 1972, Murty 1968). With
// max-marginals a cell shows its second best labelling at once, and one node splits it (Nilsson 1998; Yanover and Weiss 2004):
// two searches per labelling. Without, see bounded_partition.hpp.
Labellings m_best_labellings(const GraphShape& shape, const double* unary, LabellingSearch& search, int64_t n_best);

}  // namespace maxmargin
