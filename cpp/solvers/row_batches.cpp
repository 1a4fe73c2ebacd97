// Sweeps with kernel columns and two classes: the rows that are worth most are solved together (sign_rows.hpp), then the scores of all follow.
#include <limits>
#include <span>

#include "solvers/row_blocks.hpp"
#include "solvers/row_blocks_memory.hpp"

namespace maxmargin {

RowBlocks::Sweep RowBlocks::sweep_signs(double tolerance, double enough, double* scores) {
    Sweep result;
    const auto n = static_cast<int64_t>(alpha_.size());
    SignRows rows = sign_rows(tolerance, scores, result);
    while (true) {
        heartbeat();
        const BoxGap gap = rows.evaluate(tolerance, squared_, scores);
        result.gap = gap.total;
        // Scores of all rows are known: there is nothing to gain by letting some rest.
        if (gap.largest <= 0.0) active_.clear();
        if (gap.largest <= 0.0 || gap.total <= enough || result.visits >= n) break;
        const std::span<const int64_t> batch = rows.choose();
        const BoxSteps done = rows.solve(*columns_, scores);
        for (const int64_t row : batch) alpha_[row] = rows.alpha(row);
        // Those that were worth most cannot move: what is left is rounding.
        if (done.steps == 0) {
            active_.clear();
            break;
        }
        const auto size = static_cast<int64_t>(batch.size());
        result.gain += done.gain;
        // A step reads two rows of the batch, a visit a column of all rows.
        result.visits += size + 2 * done.steps * size / n;
    }
    result.moves = n_active();
    return result;
}

// Rows without curvature are moved here, one by one: those of zeros, which move no score, and what is no kernel.
SignRows RowBlocks::sign_rows(double tolerance, double* scores, Sweep& result) {
    SignRows rows(static_cast<int64_t>(alpha_.size()));
    for (int64_t i = 0; i < space_->n_examples(); ++i) {
        const double C = budgets_[i];
        if (C <= 0.0) continue;
        const double delta = loss(i, 0), a = curvature(i, delta) + ridge(i);
        if (a > 0.0) {
            rows.set(i, {alpha_[i], delta, factor(delta) * truth_[i], a, ridge(i), C, squared_ ? std::numeric_limits<double>::infinity() : C});
        } else {
            move_flat(i, tolerance, scores, result);
        }
    }
    return rows;
}

void RowBlocks::move_flat(int64_t example, double tolerance, double* scores, Sweep& result) {
    const double before = alpha_[example];
    double step;
    if (!visit_sign(example, scores[example], tolerance, result, step) || step == 0.0) return;
    try {
        columns_->prepare(std::span(&example, 1));
    } catch (...) {
        // Whoever breaks this off finds scores that belong to α.
        alpha_[example] = before;
        throw;
    }
    columns_->add({step}, 1, scores);
}

}  // namespace maxmargin
