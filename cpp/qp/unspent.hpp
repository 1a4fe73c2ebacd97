// What is left of a budget that a sum is taken from.
#pragma once

#include <cstddef>

namespace maxmargin {

// `left` is a finite budget less n_terms masses. Rounding of the sum must not make a spent budget look like one with mass left.
inline double unspent(double left, std::size_t n_terms, double budget) {
    return left <= 1e-15 * static_cast<double>(n_terms) * budget ? 0.0 : left;
}

}  // namespace maxmargin
