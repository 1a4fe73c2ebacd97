// Sums of columns of a kernel matrix: a loop of kernels.hpp.
#pragma once

#include <cstdint>

namespace maxmargin {

// sums[r] += Σ_p factors[p] · columns[p][first + r] for r < length, in the precision of the sums.
template <class Scalar, class Sum>
struct ColumnSum {
    const Scalar* const* columns;
    const double* factors;
    int64_t n_columns, first, length;
    Sum* sums;
};

}  // namespace maxmargin
