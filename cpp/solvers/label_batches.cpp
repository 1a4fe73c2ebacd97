// Sweeps with kernel columns and more than two classes: batches of rows, each of which moves mass between two of its labels.
//
// With η_il = α_il for wrong labels and η_iy = C_i − Σ α what is left at the truth, a row gains by moving mass from a label to one of a higher
// value F. A batch has one such move for each of its rows, the ones that gain most, and solves them over each other by pairs, as for two
// classes (sign_rows.hpp); so, too, up to half of it are moves of the batch before that stopped between their ends. Moves of all labels
// share a batch: taking the rows of one pair of labels after the other leaves to each pair what the next one undoes.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "scores/kernels.hpp"
#include "solvers/row_blocks.hpp"
#include "solvers/row_blocks_memory.hpp"

namespace maxmargin {

namespace {

constexpr size_t most_in_batch = 240, most_kept = most_in_batch / 2;

}  // namespace

// Mass that may go from one label to another. A unit of it changes the row's direction in w by `factors`, by label: at most the two labels
// and the truth, since planes of unequal factors take unequal parts of it.
struct RowBlocks::LabelMove {
    int64_t row;
    int32_t from, to;
    double derivative, curvature, mass, upper;  // of the dual; mass at `to`, between 0 and upper
    int n_terms;
    std::array<int32_t, 3> labels;
    std::array<double, 3> factors;

    bool is_between() const { return mass > 0.0 && mass < upper; }
    double gain() const {
        const double step = std::clamp(derivative / curvature, -mass, upper - mass);
        return step * (derivative - 0.5 * curvature * step);
    }
    double product(const LabelMove& other) const {
        double sum = 0.0;
        for (int p = 0; p < n_terms; ++p)
            for (int q = 0; q < other.n_terms; ++q)
                if (labels[p] == other.labels[q]) sum += factors[p] * other.factors[q];
        return sum;
    }
};

RowBlocks::Sweep RowBlocks::sweep_labels(double tolerance, double enough, double* scores) {
    Sweep result;
    std::vector<LabelMove> batch;
    move_flat_labels(tolerance, scores, result);
    while (true) {
        heartbeat();
        const double largest = value_rows(tolerance, scores, result);
        // Scores of all rows are known: there is nothing to gain by letting some rest.
        if (largest <= 0.0) active_.clear();
        if (largest <= 0.0 || result.gap <= enough || result.visits >= space_->n_examples()) break;
        choose_moves(scores, batch);
        // Those that were worth most cannot move: what is left is rounding.
        if (!solve_moves(batch, scores, result)) {
            active_.clear();
            break;
        }
    }
    result.moves = n_active();
    return result;
}

// Rows without curvature, one by one: those of zeros, which move no score, and what is no kernel.
void RowBlocks::move_flat_labels(double tolerance, double* scores, Sweep& result) {
    for (int64_t i = 0; i < space_->n_examples(); ++i) {
        if (budgets_[i] <= 0.0 || norms_[i] > 0.0) continue;
        const auto masses = masses_.of(i);
        const std::vector<LabelMass> before(masses.begin(), masses.end());
        if (!visit_labels(i, scores + i * stride_, tolerance, result)) continue;
        std::vector<double>& change = memory_->change;
        change.assign(stride_, 0.0);
        for (const LabelMass& mass : memory_->changes) {
            change[truth_[i]] += mass.alpha;
            change[mass.label] -= mass.alpha;
        }
        try {
            columns_->prepare(std::span(&i, 1));
        } catch (...) {
            // Whoever breaks this off finds scores that belong to α.
            masses_.set(i, before);
            throw;
        }
        columns_->add(change, stride_, scores);
    }
}

// What each row gains by its best move, and the gap of all. Returns by how much that of one exceeds tolerance · C_i.
double RowBlocks::value_rows(double tolerance, const double* scores, Sweep& result) {
    std::vector<double>& worth = memory_->worth;
    worth.assign(space_->n_examples(), 0.0);
    result.gap = 0.0;
    double largest = 0.0;
    for (int64_t i = 0; i < space_->n_examples(); ++i) {
        const double C = budgets_[i];
        if (C <= 0.0 || !(norms_[i] > 0.0)) continue;
        const double highest = value_labels(i, scores + i * stride_, *memory_);
        if (highest <= 0.0 && masses_.of(i).empty()) continue;
        double total;
        const double paid = paid_by(i, *memory_, total), own_gap = std::max(0.0, gap(highest, paid, total, C));
        result.gap += own_gap;
        largest = std::max(largest, own_gap - tolerance * C);
        if (own_gap > 0.0) worth[i] = best_move(i, highest, total).gain();
    }
    return largest;
}

// At memory.values, whose highest this is: from the label of the row that gains most to the best one. The truth is worth what mass costs.
RowBlocks::LabelMove RowBlocks::best_move(int64_t row, double highest, double total) const {
    const std::vector<double>& values = memory_->values;
    const double price = ridge(row) * total;
    const int32_t truth = truth_[row];
    const int32_t best = highest > price ? static_cast<int32_t>(std::find(values.begin(), values.end(), highest) - values.begin()) : truth;
    LabelMove found = best == truth ? move_between(row, truth, masses_.of(row).front().label, total) : move_between(row, truth, best, total);
    for (const LabelMass& mass : masses_.of(row)) {
        if (mass.label == best) continue;
        const LabelMove move = move_between(row, mass.label, best, total);
        if (move.gain() > found.gain()) found = move;
    }
    return found;
}

// At memory.values. With the truth, it is the other label's mass that varies: of the truth's there may be no end.
RowBlocks::LabelMove RowBlocks::move_between(int64_t row, int32_t from, int32_t to, double total) const {
    const int32_t truth = truth_[row];
    if (to == truth) std::swap(from, to);
    const bool is_new = from == truth;
    double of_from = 0.0, of_to = 0.0;
    for (const LabelMass& mass : masses_.of(row)) {
        if (mass.label == from) of_from = mass.alpha;
        if (mass.label == to) of_to = mass.alpha;
    }
    if (is_new) of_from = squared_ ? std::numeric_limits<double>::infinity() : std::max(0.0, budgets_[row] - total);
    const double f_from = is_new ? 0.0 : factor(loss(row, from)), f_to = factor(loss(row, to));
    LabelMove move{row, from, to, memory_->values[to] - (is_new ? ridge(row) * total : memory_->values[from]), 0.0, of_to, of_from + of_to, 2, {to, from, truth}, {-f_to, f_from, f_to - f_from}};
    if (is_new) move.factors[1] = f_to;
    else if (f_to != f_from) move.n_terms = 3;
    move.curvature = norms_[row] * move.product(move) + (is_new ? ridge(row) : 0.0);
    return move;
}

void RowBlocks::choose_moves(const double* scores, std::vector<LabelMove>& batch) {
    std::vector<double>& worth = memory_->worth;
    const auto load = [&](int64_t row, double& total) {
        const double highest = value_labels(row, scores + row * stride_, *memory_);
        paid_by(row, *memory_, total);
        return highest;
    };
    double total;
    for (LabelMove& move : batch) {
        load(move.row, total);
        move = move_between(move.row, move.from, move.to, total);
    }
    std::erase_if(batch, [](const LabelMove& move) { return !move.is_between(); });
    std::sort(batch.begin(), batch.end(), [](const LabelMove& a, const LabelMove& b) { return a.gain() > b.gain() || (a.gain() == b.gain() && a.row < b.row); });
    if (batch.size() > most_kept) batch.erase(batch.begin() + most_kept, batch.end());
    for (const LabelMove& move : batch) worth[move.row] = 0.0;
    std::vector<int64_t>& rows = memory_->batch;
    rows.clear();
    for (int64_t i = 0; i < space_->n_examples(); ++i)
        if (worth[i] > 0.0) rows.push_back(i);
    const size_t wanted = std::min(rows.size(), most_in_batch - batch.size());
    if (wanted < rows.size())
        std::nth_element(rows.begin(), rows.begin() + static_cast<int64_t>(wanted), rows.end(), [&](int64_t a, int64_t b) { return worth[a] > worth[b] || (worth[a] == worth[b] && a < b); });
    for (size_t k = 0; k < wanted; ++k) {
        const double highest = load(rows[k], total);
        batch.push_back(best_move(rows[k], highest, total));
    }
    // Near rows are near in columns too.
    std::sort(batch.begin(), batch.end(), [](const LabelMove& a, const LabelMove& b) { return a.row < b.row; });
}

// Returns whether any moved.
bool RowBlocks::solve_moves(std::vector<LabelMove>& batch, double* scores, Sweep& result) {
    if (batch.empty()) return false;
    const int64_t n = static_cast<int64_t>(batch.size()), m = padded_box(n);
    std::vector<int64_t>& rows = memory_->batch;
    rows.clear();
    for (const LabelMove& move : batch) rows.push_back(move.row);
    columns_->prepare(rows, memory_->among);
    std::vector<double>&gram = memory_->gram, &arrays = memory_->gram_values, &change = memory_->change;
    gram.assign(m * m, 0.0);
    arrays.assign(7 * m, 0.0);
    double *values = arrays.data(), *alpha = values + m, *upper = alpha + m, *curvature = upper + m, *memory = curvature + m;
    std::fill(curvature, curvature + m, 1.0);
    for (int64_t p = 0; p < n; ++p) {
        values[p] = batch[p].derivative;
        alpha[p] = batch[p].mass;
        upper[p] = batch[p].upper;
        curvature[p] = gram[p * m + p] = batch[p].curvature;
        for (int64_t q = 0; q < p; ++q) gram[p * m + q] = gram[q * m + p] = memory_->among[p * n + q] * batch[p].product(batch[q]);
    }
    const BoxSteps done = solve_box({m, gram.data(), curvature, upper, values, alpha, memory, batch_least_share, batch_steps_per_variable * n});
    change.assign(n * stride_, 0.0);
    for (int64_t p = 0; p < n; ++p) {
        const double moved = alpha[p] - batch[p].mass;
        if (moved == 0.0) continue;
        for (int t = 0; t < batch[p].n_terms; ++t) change[p * stride_ + batch[p].labels[t]] += moved * batch[p].factors[t];
        take_move(batch[p], alpha[p]);
    }
    columns_->add(change, stride_, scores);
    result.gain += done.gain;
    // A step reads two rows of the batch, a visit a column of all rows.
    result.visits += n + 2 * done.steps * n / space_->n_examples();
    return done.steps > 0;
}

void RowBlocks::take_move(const LabelMove& move, double mass) {
    std::vector<LabelMass>& kept = memory_->kept;
    kept.clear();
    for (const LabelMass& other : masses_.of(move.row))
        if (other.label != move.to && other.label != move.from) kept.push_back(other);
    if (mass > 0.0) kept.push_back({move.to, mass});
    if (move.from != truth_[move.row] && mass < move.upper) kept.push_back({move.from, move.upper - mass});
    masses_.set(move.row, kept);
}

}  // namespace maxmargin
