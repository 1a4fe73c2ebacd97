// Several good outputs of one example that differ from each other (Batra, Yadollahpour, Guzman-Rivera and Shakhnarovich 2012).
//
// Output m is the best one for
//
//     score(y) [+ loss] + Σ_{m' < m} strengths[m'] · (weight of the places where y differs from output m'),
//
// which is the same search with lower scores at the labels that were used before. Outputs may come again where difference is worth little.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "structures/structure.hpp"

namespace maxmargin {

// strengths.size() + 1 outputs in the order they are found, for a structure that has_places; the first is the best one, and the others
// may be rough. The scores are afterwards what they were.
std::vector<std::vector<int32_t>> diverse_outputs(const Structure& structure, int64_t example, PartScores<double> scores, Search kind,
                                                  std::span<const double> strengths, bool are_rough = false);

}  // namespace maxmargin
