#include "solvers/sign_rows.hpp"

#include <algorithm>
#include <functional>
#include <limits>

#include "scores/kernels.hpp"

namespace maxmargin {

namespace {

constexpr size_t most_in_batch = 120, most_kept = most_in_batch / 2;
// The best of many rows are looked for among those that are worth as much as the best of one in so many, with so many times as many to spare.
constexpr size_t sample_stride = 16, spare = 3;

}  // namespace

SignRows::SignRows(int64_t n)
    : n_(n),
      padded_(padded_box(n)),
      alpha_(padded_),
      loss_(padded_),
      y_(padded_),
      curvature_(padded_),
      inverse_(padded_),
      ridge_(padded_),
      budget_(padded_),
      upper_(padded_),
      worth_(padded_),
      is_in_batch_(n) {}

void SignRows::set(int64_t row, const Row& values) {
    alpha_[row] = std::min(values.alpha, values.upper);
    loss_[row] = values.loss;
    y_[row] = values.y;
    curvature_[row] = values.curvature;
    inverse_[row] = 1.0 / values.curvature;
    ridge_[row] = values.ridge;
    budget_[row] = values.budget;
    upper_[row] = values.upper;
    by_class_[values.y > 0.0].push_back(static_cast<int32_t>(row));
}

BoxGap SignRows::evaluate(double tolerance, bool squared, const double* scores) {
    const int64_t whole = n_ / box_padding * box_padding;
    double tail[box_padding] = {};
    std::copy(scores + whole, scores + n_, tail);
    const auto part = [&](int64_t begin, int64_t length, const double* own) {
        return value_box({length, own, &alpha_[begin], &loss_[begin], &y_[begin], &curvature_[begin], &inverse_[begin], &upper_[begin],
                          &ridge_[begin], &budget_[begin], squared, tolerance, &worth_[begin]});
    };
    BoxGap gap;
    if (whole > 0) gap = part(0, whole, scores);
    if (whole < n_) {
        const BoxGap rest = part(whole, box_padding, tail);
        gap.total += rest.total;
        gap.largest = std::max(gap.largest, rest.largest);
    }
    return gap;
}

std::span<const int64_t> SignRows::choose() {
    keep_free();
    const size_t wanted = (most_in_batch - batch_.size()) / 2;
    for (const auto& rows : by_class_) add_best(rows, wanted);
    for (const int64_t row : batch_) is_in_batch_[row] = 0;
    // Near rows are near in columns too.
    std::sort(batch_.begin(), batch_.end());
    return batch_;
}

// Of the last batch those between their bounds, the ones that are worth most first.
void SignRows::keep_free() {
    std::erase_if(batch_, [&](int64_t row) { return alpha_[row] <= 0.0 || alpha_[row] >= upper_[row]; });
    std::sort(batch_.begin(), batch_.end(), [&](int64_t a, int64_t b) { return is_better(a, b); });
    batch_.resize(std::min(batch_.size(), most_kept));
    for (const int64_t row : batch_) is_in_batch_[row] = 1;
}

// As many of these rows as are wanted, those that are worth most. A sample of them says about how much that is, so that not all have to be sorted.
void SignRows::add_best(const std::vector<int32_t>& rows, size_t wanted) {
    double least = -std::numeric_limits<double>::infinity();
    const size_t rank = spare * wanted / sample_stride + 1;
    if (rows.size() > 2 * rank * sample_stride) {
        sample_.clear();
        for (size_t k = 0; k < rows.size(); k += sample_stride) sample_.push_back(worth_[rows[k]]);
        std::nth_element(sample_.begin(), sample_.begin() + static_cast<int64_t>(rank), sample_.end(), std::greater<>());
        least = sample_[rank];
    }
    const auto collect = [&] {
        candidates_.clear();
        for (const int32_t row : rows)
            if (worth_[row] >= least && !is_in_batch_[row]) candidates_.push_back(row);
    };
    collect();
    if (candidates_.size() < wanted && least > -std::numeric_limits<double>::infinity()) {
        least = -std::numeric_limits<double>::infinity();
        collect();
    }
    const size_t n = std::min(candidates_.size(), wanted);
    if (n == 0) return;
    std::nth_element(candidates_.begin(), candidates_.begin() + static_cast<int64_t>(n - 1), candidates_.end(), [&](int32_t a, int32_t b) { return is_better(a, b); });
    batch_.insert(batch_.end(), candidates_.begin(), candidates_.begin() + static_cast<int64_t>(n));
}

BoxSteps SignRows::solve(RowColumns& columns, double* scores) {
    const int64_t n = static_cast<int64_t>(batch_.size()), m = padded_box(n);
    columns.prepare(batch_, among_);
    gram_.assign(m * m, 0.0);
    arrays_.assign(7 * m, 0.0);
    double *values = arrays_.data(), *alpha = values + m, *upper = alpha + m, *curvature = upper + m, *memory = curvature + m;
    std::fill(curvature, curvature + m, 1.0);
    for (int64_t p = 0; p < n; ++p) {
        const int64_t row = batch_[p];
        values[p] = loss_[row] - y_[row] * scores[row] - ridge_[row] * alpha_[row];
        alpha[p] = alpha_[row];
        upper[p] = upper_[row];
        curvature[p] = curvature_[row];
        for (int64_t q = 0; q < n; ++q) gram_[p * m + q] = y_[row] * y_[batch_[q]] * among_[p * n + q];
        gram_[p * m + p] = curvature_[row];
    }
    const BoxSteps done = solve_box({m, gram_.data(), curvature, upper, values, alpha, memory, batch_least_share, batch_steps_per_variable * n});
    change_.resize(n);
    for (int64_t p = 0; p < n; ++p) {
        const int64_t row = batch_[p];
        change_[p] = y_[row] * (alpha[p] - alpha_[row]);
        alpha_[row] = alpha[p];
    }
    columns.add(change_, 1, scores);
    return done;
}

}  // namespace maxmargin
