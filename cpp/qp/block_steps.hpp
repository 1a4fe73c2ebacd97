// The block steps of the dual coordinate papers, in the space of one example's planes: w is not needed, only the Gram matrix.
//
// Symbols as in smo.hpp. Both leave `values` = F at the new α.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace maxmargin {

// max F − min F over what carries mass, the zero plane (F = 0, with what is left of the budget) included: 0 at the optimum.
double pair_violation(std::size_t n, const double* values, const double* alpha, double budget);

// Balamurugan et al. 2011, equation 4.6: the maximum violating pair exchanges mass until pair_violation ≤ tolerance. α is C times the
// paper's here, so that the C which 4.6 lacks in its denominator cancels. Returns the steps made.
std::int64_t ascend_pairs(const double* gram, std::size_t n, double* values, double* alpha, double budget, double tolerance,
                          std::int64_t max_steps);

// The largest |F| of what can be moved: planes without mass only upwards. 0 at the optimum.
double coordinate_violation(std::size_t n, const double* values, const double* alpha);

// Chang and Yih 2013, UpdateWeight for the squared hinge: each α in the given order is set to its best value ≥ 0. The Gram
// matrix has 1/2C added everywhere, and `values` have Σα/2C taken off.
void ascend_coordinates(const double* gram, std::size_t n, std::span<const std::size_t> order, double* values, double* alpha);

}  // namespace maxmargin
