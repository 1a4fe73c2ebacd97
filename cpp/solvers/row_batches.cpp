// Sweeps with kernel columns: some blocks at a time are solved over each other's changes, then the scores of all rows follow at once.
//
// Of two classes a batch has the blocks that are worth most (sign_rows.hpp). Blocks of more classes are taken in random order, and visited
// a few times each.
#include <algorithm>
#include <limits>
#include <span>

#include "solvers/row_blocks.hpp"
#include "solvers/row_blocks_memory.hpp"

namespace maxmargin {

namespace {

constexpr size_t most_in_batch = 240;
constexpr int batch_rounds = 3;

}  // namespace

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
        columns_->prepare(std::span(&example, 1), memory_->among);
    } catch (...) {
        // Whoever breaks this off finds scores that belong to α.
        alpha_[example] = before;
        throw;
    }
    columns_->add({step}, 1, scores);
}

RowBlocks::Sweep RowBlocks::sweep_labels(double tolerance, double* scores) {
    Sweep result;
    memory_->rests.assign(active_.size(), 0);
    for (size_t next = 0; next < memory_->order.size();) {
        heartbeat();
        next = choose_labels(next, tolerance, scores, result);
        solve_batch(tolerance, scores, result);
    }
    result.visits = n_active();
    drop_resting();
    result.moves = n_active();
    return result;
}

// Takes blocks that will move from the list of active ones, from the next place on; the others are noted to rest.
size_t RowBlocks::choose_labels(size_t next, double tolerance, const double* scores, Sweep& result) {
    const std::vector<int32_t>& order = memory_->order;
    std::vector<int64_t>& batch = memory_->batch;
    for (batch.clear(); next < order.size() && batch.size() < most_in_batch; ++next) {
        const int64_t example = active_[order[next]];
        const double highest = value_labels(example, scores + example * stride_, *memory_);
        double total;
        const double paid = paid_by(example, *memory_, total), own_gap = gap(highest, paid, total, budgets_[example]);
        result.gap += std::max(0.0, own_gap);
        if (own_gap > tolerance * budgets_[example]) batch.push_back(example);
        else memory_->rests[order[next]] = 1;
    }
    return next;
}

void RowBlocks::solve_batch(double tolerance, double* scores, Sweep& result) {
    const std::vector<int64_t>& batch = memory_->batch;
    const size_t n = batch.size(), stride = static_cast<size_t>(stride_);
    if (n == 0) return;
    std::vector<double>&among = memory_->among, &own = memory_->own_scores, &change = memory_->change;
    columns_->prepare(batch, among);
    own.resize(n * stride);
    change.assign(n * stride, 0.0);
    for (size_t p = 0; p < n; ++p) std::copy_n(scores + batch[p] * stride_, stride, own.data() + p * stride);
    const auto move = [&](size_t p, int32_t label, double a) {
        if (a == 0.0) return;
        change[p * stride + label] += a;
        for (size_t q = 0; q < n; ++q) own[q * stride + label] += a * among[p * n + q];
    };
    Sweep inner;
    for (int round = 0; round < batch_rounds; ++round) {
        bool any = false;
        for (size_t p = 0; p < n; ++p) {
            if (!visit_labels(batch[p], own.data() + p * stride, tolerance, inner)) continue;
            double sum = 0.0;
            for (const LabelMass& mass : memory_->changes) sum += mass.alpha;
            move(p, truth_[batch[p]], sum);
            for (const LabelMass& mass : memory_->changes) move(p, mass.label, -mass.alpha);
            any = true;
        }
        if (!any) break;
    }
    result.gain += inner.gain;
    columns_->add(change, stride_, scores);
}

}  // namespace maxmargin
