#include "qp/budget_qp.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "qp/smo.hpp"
#include "threads/parallel.hpp"

namespace maxmargin {
namespace {

void require_finite(std::span<const double> numbers, const char* name) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        if (!std::isfinite(numbers[i])) {
            throw std::invalid_argument(std::string(name) + "[" + std::to_string(i) + "] is " +
                                        std::to_string(numbers[i]) + ": every entry must be finite.");
        }
    }
}

void require_size(std::span<const double> numbers, std::size_t expected, const char* name, const char* why) {
    if (numbers.size() != expected) {
        throw std::invalid_argument(std::string(name) + " has " + std::to_string(numbers.size()) +
                                    " entries, expected " + std::to_string(expected) + ": " + why + ".");
    }
}

void require_budget(double budget) {
    if (!(std::isfinite(budget) && budget > 0.0)) {
        throw std::invalid_argument("budget is " + std::to_string(budget) + ": it must be positive and finite.");
    }
}

double inner(const double* a, const double* b, std::size_t n) { return std::inner_product(a, a + n, b, 0.0); }

}  // namespace

BudgetQP::BudgetQP(double budget, std::size_t n_nonnegative)
    : budget_(budget), n_nonnegative_(n_nonnegative), sum_at_nonnegative_(n_nonnegative, 0.0), mu_(n_nonnegative, 0.0) {
    require_budget(budget);
}

void BudgetQP::reserve(std::size_t planes) {
    if (planes <= stride_) return;
    const std::size_t stride = std::max<std::size_t>({16, 2 * stride_, planes});
    std::vector<double> grown(stride * stride);
    for (std::size_t k = 0; k < size(); ++k) std::copy_n(gram_row(k), size(), grown.data() + k * stride);
    gram_ = std::move(grown);
    stride_ = stride;
}

void BudgetQP::add(double c, std::span<const double> row, std::span<const double> at_nonnegative) {
    const std::size_t n = size();
    require_size(row, n + 1, "gram_row", "one product with each plane held, then the plane's square");
    require_size(at_nonnegative, n_nonnegative_, "at_nonnegative", "one for each non-negative coordinate of w");
    if (!std::isfinite(c)) throw std::invalid_argument("c is " + std::to_string(c) + ": it must be finite.");
    require_finite(row, "gram_row");
    require_finite(at_nonnegative, "at_nonnegative");
    if (row[n] < 0.0) {
        throw std::invalid_argument("gram_row ends with " + std::to_string(row[n]) +
                                    ": the last entry is the plane's square and cannot be negative.");
    }
    reserve(n + 1);
    for (std::size_t k = 0; k <= n; ++k) gram_[n * stride_ + k] = gram_[k * stride_ + n] = row[k];
    values_.push_back(c - inner(row.data(), alpha_.data(), n) -
                      inner(at_nonnegative.data(), mu_.data(), n_nonnegative_));
    c_.push_back(c);
    alpha_.push_back(0.0);
    at_nonnegative_.insert(at_nonnegative_.end(), at_nonnegative.begin(), at_nonnegative.end());
}

void BudgetQP::remove(std::span<const std::size_t> indices) {
    for (std::size_t i = 0; i < indices.size(); ++i) {
        if (indices[i] >= size() || (i > 0 && indices[i] <= indices[i - 1])) {
            throw std::invalid_argument("indices[" + std::to_string(i) + "] is " + std::to_string(indices[i]) +
                                        ": indices must ascend and be below the number of planes, " +
                                        std::to_string(size()) + ".");
        }
    }
    std::vector<std::size_t> kept;
    kept.reserve(size());
    bool mass_leaves = false;
    for (std::size_t k = 0, next = 0; k < size(); ++k) {
        if (next < indices.size() && indices[next] == k) {
            mass_leaves |= alpha_[k] > 0.0;
            ++next;
        } else {
            kept.push_back(k);
        }
    }
    for (std::size_t i = 0; i < kept.size(); ++i) {
        const std::size_t k = kept[i];
        for (std::size_t j = 0; j < kept.size(); ++j) gram_[i * stride_ + j] = gram_[k * stride_ + kept[j]];
        c_[i] = c_[k];
        alpha_[i] = alpha_[k];
        values_[i] = values_[k];
        std::copy_n(at_nonnegative_.data() + k * n_nonnegative_, n_nonnegative_,
                    at_nonnegative_.data() + i * n_nonnegative_);
    }
    c_.resize(kept.size());
    alpha_.resize(kept.size());
    values_.resize(kept.size());
    at_nonnegative_.resize(kept.size() * n_nonnegative_);
    if (mass_leaves) refresh();
}

void BudgetQP::set_budget(double budget) {
    require_budget(budget);
    budget_ = budget;
    const double sum = std::accumulate(alpha_.begin(), alpha_.end(), 0.0);
    if (sum > budget) {
        for (double& mass : alpha_) mass *= budget / sum;
        refresh();
    }
}

void BudgetQP::set_alpha(std::span<const double> alpha) {
    require_size(alpha, size(), "alpha", "one for each plane held");
    require_finite(alpha, "alpha");
    double sum = 0.0;
    for (std::size_t k = 0; k < alpha.size(); ++k) {
        if (alpha[k] < 0.0) {
            throw std::invalid_argument("alpha[" + std::to_string(k) + "] is " + std::to_string(alpha[k]) +
                                        ": it must not be negative.");
        }
        sum += alpha[k];
    }
    // An α that filled the budget when it was stored may exceed it by the rounding of its sum.
    if (sum > budget_ * (1.0 + 1e-12)) {
        throw std::invalid_argument("alpha sums to " + std::to_string(sum) + ", more than the budget " +
                                    std::to_string(budget_) + ".");
    }
    std::copy(alpha.begin(), alpha.end(), alpha_.begin());
    refresh();
}

// μ and F from α alone, so that rounding errors of earlier updates do not pile up.
void BudgetQP::refresh() {
    values_ = c_;
    std::fill(sum_at_nonnegative_.begin(), sum_at_nonnegative_.end(), 0.0);
    for (std::size_t k = 0; k < size(); ++k) {
        const double mass = alpha_[k];
        if (mass == 0.0) continue;
        const double* row = gram_row(k);
        for (std::size_t l = 0; l < size(); ++l) values_[l] -= mass * row[l];
        const double* at_nonnegative = at_nonnegative_.data() + k * n_nonnegative_;
        for (std::size_t j = 0; j < n_nonnegative_; ++j) sum_at_nonnegative_[j] += mass * at_nonnegative[j];
    }
    for (std::size_t j = 0; j < n_nonnegative_; ++j) mu_[j] = std::max(0.0, -sum_at_nonnegative_[j]);
    for (std::size_t k = 0; k < size() && n_nonnegative_ > 0; ++k) {
        values_[k] -= inner(at_nonnegative_.data() + k * n_nonnegative_, mu_.data(), n_nonnegative_);
    }
}

QPResult BudgetQP::solve(double tolerance, std::int64_t max_steps) {
    if (!(tolerance >= 0.0)) {
        throw std::invalid_argument("tolerance is " + std::to_string(tolerance) + ": it must be zero or positive.");
    }
    refresh();
    // A repetition continues where drifted values or, with J, a model that holds its active set fixed ended early.
    constexpr int kPatience = 10;
    double best_gap = gap();
    std::int64_t steps = 0;
    for (int without_progress = 0; gap() > tolerance && steps < max_steps && without_progress < kPatience;) {
        const std::int64_t made = ascend(tolerance, max_steps - steps);
        refresh();
        if (gap() > tolerance) lengthen();
        if (made == 0) break;
        steps += made;
        without_progress = gap() < 0.9 * best_gap ? 0 : without_progress + 1;
        best_gap = std::min(best_gap, gap());
    }
    return {gap(), dual(), steps};
}

// Where little of the budget is spent, a value 1e-14 above zero costs budget·1e-14 but one below only α·1e-14. If
// rounding has left some above, a slightly longer w is therefore much nearer to the optimum than the shorter one.
void BudgetQP::lengthen() {
    constexpr double kRounding = 1e-9, kMargin = 1e-14;
    double excess = 0.0;  // relative to w
    for (std::size_t k = 0; k < size(); ++k) {
        const double reach = c_[k] - values_[k];  // w·g_k
        if (values_[k] <= 0.0) continue;
        if (values_[k] > kRounding * reach) return;
        excess = std::max(excess, values_[k] / reach + kMargin);
    }
    if (excess == 0.0 || (1.0 + excess) * std::accumulate(alpha_.begin(), alpha_.end(), 0.0) > budget_) return;
    const double gap_before = gap();
    const std::vector<double> alpha_before = alpha_;
    for (double& mass : alpha_) mass *= 1.0 + excess;
    refresh();
    if (gap() < gap_before) return;
    alpha_ = alpha_before;
    refresh();
}

// G − B_P B_Pᵀ for the set P of coordinates that μ holds at 0 now.
class BudgetQP::ReducedGram final : public GramRows {
public:
    explicit ReducedGram(BudgetQP& qp) : qp_(qp), n_(qp.size()), diagonal_(n_), is_made_(n_, 0) {
        for (std::size_t j = 0; j < qp.n_nonnegative_; ++j) {
            if (qp.mu_[j] <= 0.0) continue;
            for (std::size_t k = 0; k < n_; ++k) at_positive_.push_back(qp.at_nonnegative_[k * qp.n_nonnegative_ + j]);
        }
        qp.reduced_gram_.resize(qp.stride_ * qp.stride_);
        for (std::size_t k = 0; k < n_; ++k) {
            diagonal_[k] = qp.gram_row(k)[k];
            for (std::size_t at = k; at < at_positive_.size(); at += n_) diagonal_[k] -= at_positive_[at] * at_positive_[at];
        }
    }

    const double* diagonal() const { return diagonal_.data(); }
    const double* row(std::size_t k) override {
        double* row = qp_.reduced_gram_.data() + k * qp_.stride_;
        if (is_made_[k]) return row;
        heartbeat();
        std::copy_n(qp_.gram_row(k), n_, row);
        for (std::size_t begin = 0; begin < at_positive_.size(); begin += n_) {
            const double* column = at_positive_.data() + begin;
            for (std::size_t l = 0; l < n_; ++l) row[l] -= column[k] * column[l];
        }
        is_made_[k] = 1;
        return row;
    }

private:
    BudgetQP& qp_;
    std::size_t n_;
    std::vector<double> at_positive_;  // B_kj of all k, for one j of P after the other
    std::vector<double> diagonal_;
    std::vector<char> is_made_;
};

// D with the best μ is quadratic wherever the set P of coordinates with μ_j > 0 does not change: there w_P = 0 and
// the Gram matrix is that of the other coordinates, G − B_P B_Pᵀ. So each ascent is a Newton step on a piecewise
// quadratic: solve the QP of the present piece, then go as far towards its solution as the true D rises.
std::int64_t BudgetQP::ascend(double tolerance, std::int64_t max_steps) {
    if (n_nonnegative_ == 0) {
        return smo(gram_.data(), stride_, size(), values_.data(), alpha_.data(), budget_, tolerance, max_steps).steps;
    }
    ReducedGram reduced(*this);
    std::vector<double> target = alpha_;
    // Half the tolerance leaves room for what the line search gives away.
    const std::int64_t steps =
        smo(reduced, reduced.diagonal(), size(), values_.data(), target.data(), budget_, 0.5 * tolerance, max_steps).steps;
    std::vector<double> direction(size());
    for (std::size_t k = 0; k < size(); ++k) direction[k] = target[k] - alpha_[k];
    const double step = line_search(direction);
    if (step == 1.0) {
        alpha_ = target;  // exact zeros stay exact
    } else {
        for (std::size_t k = 0; k < size(); ++k) alpha_[k] = std::max(0.0, alpha_[k] + step * direction[k]);
    }
    return step > 0.0 ? steps : 0;
}

// The t in [0, 1] where D(α + t·direction), with the best μ at each t, is largest. With a = Σ α_k B_k and
// b = Σ direction_k B_k its derivative falls piecewise linearly:
//     slope(t) = Σ_k direction_k (c_k − (G(α + t·direction))_k) − Σ_j b_j max(0, −(a_j + t b_j))
double BudgetQP::line_search(std::span<const double> direction) const {
    std::vector<double> b(n_nonnegative_, 0.0);
    double at_start = 0.0, curvature = 0.0;
    for (std::size_t k = 0; k < size(); ++k) {
        if (direction[k] == 0.0) continue;
        const double* row = gram_row(k);
        at_start += direction[k] * (c_[k] - inner(row, alpha_.data(), size()));
        curvature += direction[k] * inner(row, direction.data(), size());
        const double* at_nonnegative = at_nonnegative_.data() + k * n_nonnegative_;
        for (std::size_t j = 0; j < n_nonnegative_; ++j) b[j] += direction[k] * at_nonnegative[j];
    }
    const auto slope = [&](double t) {
        double value = at_start - t * curvature;
        for (std::size_t j = 0; j < n_nonnegative_; ++j) {
            value -= b[j] * std::max(0.0, -(sum_at_nonnegative_[j] + t * b[j]));
        }
        return value;
    };
    // In a piece that holds the whole segment the slope ends at zero up to rounding: that is a full step.
    const double rise = slope(0.0);
    if (!(rise > 0.0)) return 0.0;
    if (slope(1.0) >= -1e-9 * rise) return 1.0;
    double low = 0.0, high = 1.0;
    for (int i = 0; i < 50; ++i) {
        const double middle = 0.5 * (low + high);
        (slope(middle) > 0.0 ? low : high) = middle;
    }
    return low;
}

double BudgetQP::slack() const {
    return std::accumulate(values_.begin(), values_.end(), 0.0, [](double a, double b) { return std::max(a, b); });
}

double BudgetQP::dual() const {
    double sum = 0.0;
    for (std::size_t k = 0; k < size(); ++k) sum += alpha_[k] * (c_[k] + values_[k]);
    return 0.5 * sum;
}

double BudgetQP::gap() const {
    const double xi = slack();
    double unused = budget_, violation = 0.0;
    for (std::size_t k = 0; k < size(); ++k) {
        unused -= alpha_[k];
        violation += alpha_[k] * (xi - values_[k]);
    }
    return violation + std::max(0.0, unused) * xi;
}

}  // namespace maxmargin
