// The dual of the 1-slack problem over the cuts found so far, kept between solves.
//
//     max_{α, μ}  D = Σ_k α_k c_k − ½‖Σ_k α_k g_k + Σ_{j∈J} μ_j e_j‖²     subject to α ≥ 0, Σ_k α_k ≤ budget, μ ≥ 0
//
// J are the coordinates of w that must not be negative. Only inner products are known: G_kl = g_k·g_l and
// B_kj = g_k[j]. For given α the best μ is μ_j = max(0, −Σ_k α_k B_kj), and it is always the one held here, so that
//
//     F_k = c_k − w·g_k = c_k − Σ_l G_kl α_l − Σ_j B_kj μ_j,      ξ = max(0, max_k F_k),
//     gap = budget·ξ − Σ_k α_k F_k  ≥  D* − D,                    D = ½ Σ_k α_k (c_k + F_k).
//
// Doubles limit the gap that can be reached: F is known to about 1e-16·(|c| + Σ|Gα|), and where the budget is spent
// the gap to budget times that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace maxmargin {

struct QPResult {
    double gap;
    double dual;
    std::int64_t steps;
};

class BudgetQP {
public:
    explicit BudgetQP(double budget, std::size_t n_nonnegative = 0);

    std::size_t size() const { return c_.size(); }
    double budget() const { return budget_; }

    // The new plane comes last, with α = 0. gram_row: its products with the planes held, then with itself.
    void add(double c, std::span<const double> gram_row, std::span<const double> at_nonnegative = {});

    // The indices ascend. Planes with α > 0 may go too: the values of the others follow.
    void remove(std::span<const std::size_t> indices);

    // α is scaled down if it exceeds the new budget.
    void set_budget(double budget);

    // Any α ≥ 0 with Σα ≤ budget.
    void set_alpha(std::span<const double> alpha);

    // Starts from the present α and stops at gap ≤ tolerance (in units of D), after max_steps, or when rounding
    // allows no further progress. The gap returned is computed from G, α and μ afresh.
    QPResult solve(double tolerance, std::int64_t max_steps);

    std::span<const double> alpha() const { return alpha_; }
    std::span<const double> mu() const { return mu_; }
    std::span<const double> values() const { return values_; }
    // Of a plane with all that are held.
    std::span<const double> products(std::size_t k) const { return {gram_row(k), size()}; }
    double slack() const;
    double dual() const;
    double gap() const;

private:
    class ReducedGram;
    const double* gram_row(std::size_t k) const { return gram_.data() + k * stride_; }
    void reserve(std::size_t planes);
    void refresh();
    std::int64_t ascend(double tolerance, std::int64_t max_steps);
    void lengthen();
    double line_search(std::span<const double> direction) const;

    double budget_;
    std::size_t n_nonnegative_;
    std::size_t stride_ = 0;
    std::vector<double> gram_;  // stride × stride, the leading size × size entries in use
    std::vector<double> c_;
    std::vector<double> alpha_;
    std::vector<double> values_;
    std::vector<double> at_nonnegative_;      // B, size × n_nonnegative
    std::vector<double> sum_at_nonnegative_;  // Σ_k α_k B_kj
    std::vector<double> mu_;
    std::vector<double> reduced_gram_;  // stride × stride, only where J is not empty; rows in use: see ReducedGram
};

}  // namespace maxmargin
