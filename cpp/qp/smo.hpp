// Sequential minimal optimisation of the small dual that every solver here ends up with.
//
//     max_α  Σ_k α_k c_k − ½ Σ_kl α_k α_l G_kl      subject to α ≥ 0, Σ_k α_k ≤ budget
//
// G is the Gram matrix of the planes, F_k = c_k − Σ_l G_kl α_l the value of plane k at w(α).
// What is missing from the budget lies on the zero plane (c = 0, g = 0), whose value is 0; with it the
// masses sum to the budget and every move takes mass from one plane to another.
//
//     ξ = max(0, max_k F_k),     gap = budget·ξ − Σ_k α_k F_k  ≥  D* − D(α)
//
// An infinite budget stands for the squared hinge: the caller has added ridge = 1/(2C) to every entry of G,
// the zero plane never runs dry, and the gap is C·H² + (ridge/2)·(Σα)² − Σ_k α_k (F_k + ridge·Σα)
// with H = max(0, max_k F_k + ridge·Σα).
#pragma once

#include <cstddef>
#include <cstdint>

namespace maxmargin {

struct SmoResult {
    double gap;          // the gap at the returned α, whether or not it fell to the tolerance
    std::int64_t steps;  // pair moves and Newton steps
};

// Rows of a Gram matrix of which few are needed: those of planes that carry mass or come to.
class GramRows {
public:
    virtual ~GramRows() = default;
    // The row stays where it is as long as a solve lasts.
    virtual const double* row(std::size_t k) = 0;
};

// Requires: α feasible, `values` = F at this α, G symmetric and positive semidefinite up to rounding (row k starts
// at gram + k·stride), ridge > 0 if the budget is infinite. Throws std::invalid_argument if that last one fails.
// Ensures: α feasible, `values` = F at the new α, D not decreased, and gap ≤ tolerance unless max_steps were made or
// rounding allows no further progress. Allocates nothing for n ≤ 64.
SmoResult smo(const double* gram, std::size_t stride, std::size_t n, double* values, double* alpha, double budget,
              double tolerance, std::int64_t max_steps, double ridge = 0.0);
// The same with a finite budget, for rows that are made when they are asked for; diagonal: G_kk.
SmoResult smo(GramRows& gram, const double* diagonal, std::size_t n, double* values, double* alpha, double budget,
              double tolerance, std::int64_t max_steps);

}  // namespace maxmargin
