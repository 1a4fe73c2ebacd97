// An order of dense rows in which neighbours are alike.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scores/features.hpp"

namespace maxmargin {

// Rows with the same code stand together; among them the feature that spreads most splits them in halves, and so on down to groups
// of this size (Friedman, Bentley and Finkel 1977). Without codes all rows are split.
std::vector<int64_t> order_alike(const Features& rows, std::span<const int32_t> codes, int64_t group_size);

}  // namespace maxmargin
