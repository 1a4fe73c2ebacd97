// Visits of one row after the other: score it, move the α of its labels, write w once.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "qp/smo.hpp"
#include "solvers/random.hpp"
#include "solvers/row_blocks.hpp"
#include "solvers/row_blocks_memory.hpp"

namespace maxmargin {

namespace {

constexpr int64_t visits_per_poll = 256;
constexpr int64_t max_block_steps = 10000;
// How far ahead of a visit its row is fetched, and where it begins.
constexpr size_t fetch_row = 6, fetch_place = 12;

inline void fetch(const void* at) {
#if defined(__GNUC__)
    __builtin_prefetch(at);
#else
    (void)at;
#endif
}

inline void fetch_bytes(const void* from, const void* to) {
    for (const char* at = static_cast<const char*>(from); at < to; at += 64) fetch(at);
}

// Four partial sums: a single one would wait for each addition to end.
template <class Scalar, class Product>
double sum_of(int64_t begin, int64_t end, Product&& product) {
    Scalar sum[4] = {};
    int64_t j = begin;
    for (; j + 4 <= end; j += 4)
        for (int k = 0; k < 4; ++k) sum[k] += product(j + k);
    for (; j < end; ++j) sum[0] += product(j);
    return static_cast<double>((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

// w·x of one column of weights.
template <class Scalar>
double row_dot(const Features& x, int64_t row, const Scalar* w) {
    if (!x.is_sparse()) {
        Scalar score;
        score_rows(ScoreTask<Scalar>{&x, nullptr, row, 1, w, 1, &score});
        return score;
    }
    const int64_t begin = x.indptr[row], end = x.indptr[row + 1];
    const int32_t* f = x.indices;
    if (x.values32) return sum_of<Scalar>(begin, end, [&](int64_t j) { return static_cast<Scalar>(x.values32[j]) * w[f[j]]; });
    if (x.values64) return sum_of<Scalar>(begin, end, [&](int64_t j) { return static_cast<Scalar>(x.values64[j]) * w[f[j]]; });
    return sum_of<Scalar>(begin, end, [&](int64_t j) { return w[f[j]]; });
}

// Rows in random order all over the memory can cost more to find than to score; those of one stretch are near each other. It
// takes rows that lie at random themselves: neighbours that resemble each other would bend w to the last stretch.
constexpr size_t stretch_of_random_rows = 1024;

// The numbers 0 … n − 1 by stretches in random order, each in random order.
void random_order(size_t n, size_t stretch_length, uint64_t seed, std::vector<int32_t>& order) {
    Random random{seed};
    std::vector<size_t> stretches((n + stretch_length - 1) / stretch_length);
    std::iota(stretches.begin(), stretches.end(), size_t{0});
    random.shuffle(std::span(stretches));
    order.clear();
    for (const size_t stretch : stretches) {
        const size_t first = order.size();
        for (size_t k = stretch * stretch_length; k < std::min(n, (stretch + 1) * stretch_length); ++k) order.push_back(static_cast<int32_t>(k));
        random.shuffle(std::span(order).subspan(first));
    }
}

}  // namespace

// Rows lie all over the memory.
template <class Scalar>
void RowBlocks::fetch_ahead(size_t place, const Scalar* w) const {
    const std::vector<int32_t>& order = memory_->order;
    if (place + fetch_place < order.size()) {
        const int32_t later = active_[order[place + fetch_place]];
        if (features_.is_sparse()) fetch(features_.indptr + later);
        fetch(&norms_[later]);
        fetch(&truth_[later]);
        fetch(&budgets_[later]);
        fetch(labels_.is_sign ? static_cast<const void*>(&alpha_[later]) : masses_.place_of(later));
    }
    if (place + fetch_row < order.size()) {
        const int64_t later = active_[order[place + fetch_row]];
        const int64_t begin = features_.is_sparse() ? features_.indptr[later] : later * features_.n_features;
        const int64_t end = features_.is_sparse() ? features_.indptr[later + 1] : begin + features_.n_features;
        if (features_.is_sparse()) fetch_bytes(features_.indices + begin, features_.indices + end);
        if (features_.values32) fetch_bytes(features_.values32 + begin, features_.values32 + end);
        if (features_.values64) fetch_bytes(features_.values64 + begin, features_.values64 + end);
        if (!labels_.is_sign) fetch(masses_.of(later).data());
    }
    if (labels_.is_sign && features_.is_sparse() && features_.n_features > 4096 && place + 2 < order.size()) {
        const int64_t next = active_[order[place + 2]];
        for (int64_t j = features_.indptr[next]; j < features_.indptr[next + 1]; ++j) fetch(w + features_.indices[j]);
    }
}

RowBlocks::Sweep RowBlocks::sweep(double tolerance, double enough, uint64_t seed, MovingWeights w, const Workers& workers) {
    Sweep result;
    if (!columns_) random_order(active_.size(), copy_ ? stretch_of_random_rows : std::max<size_t>(active_.size(), 1), seed, memory_->order);
    for_each_chunk(1, workers, [&](int64_t, int) {
        if (columns_) result = labels_.is_sign ? sweep_signs(tolerance, enough, w.exact) : sweep_labels(tolerance, enough, w.exact);
        else result = w.rounded ? sweep_any(tolerance, w.rounded) : sweep_any(tolerance, w.exact);
    });
    return result;
}

template <class Scalar>
RowBlocks::Sweep RowBlocks::sweep_any(double tolerance, Scalar* w) {
    Sweep result;
    std::vector<Scalar>& scores = memory_->scores<Scalar>();
    scores.resize(stride_);
    const std::vector<int32_t>& order = memory_->order;
    std::vector<char>& rests = memory_->rests;
    rests.assign(active_.size(), 0);
    for (size_t k = 0; k < order.size(); ++k) {
        if (k % visits_per_poll == 0) heartbeat();
        const int64_t example = active_[order[k]];
        fetch_ahead(k, w);
        bool moves;
        if (labels_.is_sign) {
            double step;
            moves = visit_sign(example, row_dot(features_, example, w), tolerance, result, step);
            if (moves) features_.for_each(example, [&](int64_t f, double x) { w[f] += static_cast<Scalar>(step) * static_cast<Scalar>(x); });
        } else {
            const int64_t next = k + 1 < order.size() ? active_[order[k + 1]] : -1;
            score_rows(ScoreTask<Scalar>{&features_, nullptr, example, 1, w, stride_, scores.data(), next});
            moves = visit_labels(example, scores.data(), tolerance, result);
            if (moves) write(example, w);
        }
        rests[order[k]] = !moves;
    }
    result.visits = n_active();
    drop_resting();
    result.moves = n_active();
    return result;
}

void RowBlocks::drop_resting() {
    size_t n_kept = 0;
    for (size_t k = 0; k < active_.size(); ++k)
        if (!memory_->rests[k]) active_[n_kept++] = active_[k];
    active_.resize(n_kept);
}

bool RowBlocks::visit_sign(int64_t example, double score, double tolerance, Sweep& result, double& step) {
    const double C = budgets_[example], delta = loss(example, 0), y = factor(delta) * truth_[example];
    const double alpha = alpha_[example], value = delta - y * score;
    const double own_gap = gap(value, alpha * value, alpha, C);
    result.gap += std::max(0.0, own_gap);
    if (!(own_gap > tolerance * C)) return false;
    const double r = ridge(example), a = curvature(example, delta) + r, slope = value - r * alpha;
    // A row of zeros has no curvature: the sign of the slope decides.
    const double wanted = a > 0.0 ? alpha + slope / a : slope > 0.0 ? C : 0.0;
    alpha_[example] = std::clamp(wanted, 0.0, squared_ ? std::numeric_limits<double>::max() : C);
    const double change = alpha_[example] - alpha;
    result.gain += change * (slope - 0.5 * a * change);
    step = y * change;
    return true;
}

template <class Scalar>
bool RowBlocks::visit_labels(int64_t example, const Scalar* scores, double tolerance, Sweep& result) {
    const double C = budgets_[example], best = value_labels(example, scores, *memory_);
    double total;
    const double paid = paid_by(example, *memory_, total), own_gap = gap(best, paid, total, C);
    result.gap += std::max(0.0, own_gap);
    if (!(own_gap > tolerance * C)) return false;
    if (is_uniform_[truth_[example]]) solve_uniform(example, total);
    else solve_best(example);
    result.gain += take(example);
    return true;
}

// All labels in closed form: their planes have the same factor.
void RowBlocks::solve_uniform(int64_t example, double total) const {
    std::vector<LabelCandidate>& candidates = memory_->candidates;
    std::vector<double>& values = memory_->massless;
    const int32_t truth = truth_[example], other = truth == 0 && n_labels_ > 1 ? 1 : 0;
    const double a = curvature(example, loss(example, other)), C = budgets_[example];
    candidates.clear();
    values.resize(n_labels_);
    for (int32_t l = 0; l < n_labels_; ++l) values[l] = memory_->values[l] + a * total;
    for (const LabelMass& mass : masses_.of(example)) values[mass.label] += a * mass.alpha;
    const auto best = std::max_element(values.begin(), values.end());
    if (*best <= 0.0) return;
    const auto best_label = static_cast<int32_t>(best - values.begin());
    if (a <= 0.0) {
        candidates.push_back({best_label, *best, squared_ ? 2.0 * C * *best : C});
        return;
    }
    const double budget = squared_ ? std::numeric_limits<double>::infinity() : C, least = least_value(*best, a, budget, ridge(example));
    for (int32_t l = 0; l < n_labels_; ++l)
        if (values[l] > least || l == best_label) candidates.push_back({l, values[l], 0.0});
    solve_labels(candidates, a, budget, ridge(example));
}

// The labels with mass and the most violated one, by the small QP.
void RowBlocks::solve_best(int64_t example) const {
    std::vector<LabelCandidate>& candidates = memory_->candidates;
    const std::vector<double>& values = memory_->values;
    candidates.clear();
    double total = 0.0;
    for (const LabelMass& mass : masses_.of(example)) {
        candidates.push_back({mass.label, values[mass.label], mass.alpha});
        total += mass.alpha;
    }
    const auto best = static_cast<int32_t>(std::max_element(values.begin(), values.end()) - values.begin());
    if (std::none_of(candidates.begin(), candidates.end(), [&](const LabelCandidate& c) { return c.label == best; })) candidates.push_back({best, values[best], 0.0});
    const size_t n = candidates.size();
    const double r = ridge(example), C = budgets_[example];
    memory_->gram.resize(n * n);
    memory_->gram_values.resize(n);
    memory_->gram_alpha.resize(n);
    for (size_t p = 0; p < n; ++p) {
        const double f = factor(loss(example, candidates[p].label));
        for (size_t q = 0; q < n; ++q) memory_->gram[p * n + q] = norms_[example] * f * factor(loss(example, candidates[q].label)) * (p == q ? 2.0 : 1.0) + r;
        memory_->gram_values[p] = candidates[p].value - r * total;
        memory_->gram_alpha[p] = candidates[p].alpha;
    }
    smo(memory_->gram.data(), n, n, memory_->gram_values.data(), memory_->gram_alpha.data(), squared_ ? std::numeric_limits<double>::infinity() : C, 0.0,
        max_block_steps, r);
    for (size_t p = 0; p < n; ++p) candidates[p].alpha = memory_->gram_alpha[p];
}

// Makes the candidates' α the example's and notes the changes. Returns the gain of the dual.
double RowBlocks::take(int64_t example) {
    std::vector<LabelMass>&kept = memory_->kept, &changes = memory_->changes;
    kept.clear();
    changes.clear();
    for (const LabelCandidate& candidate : memory_->candidates) {
        changes.push_back({candidate.label, candidate.alpha});
        if (candidate.alpha > 0.0) kept.push_back(changes.back());
    }
    double before = 0.0, after = 0.0;
    for (const LabelMass& mass : kept) after += mass.alpha;
    for (const LabelMass& mass : masses_.of(example)) {
        before += mass.alpha;
        const auto same = std::find_if(changes.begin(), changes.end(), [&](const LabelMass& c) { return c.label == mass.label; });
        if (same == changes.end()) changes.push_back({mass.label, -mass.alpha});
        else same->alpha -= mass.alpha;
    }
    masses_.set(example, kept);
    double linear = 0.0, sum = 0.0, squares = 0.0;
    for (LabelMass& change : changes) {
        const double f = factor(loss(example, change.label));
        linear += change.alpha * memory_->values[change.label];
        change.alpha *= f;
        sum += change.alpha;
        squares += change.alpha * change.alpha;
    }
    return linear - 0.5 * norms_[example] * (sum * sum + squares) - 0.5 * ridge(example) * (after * after - before * before);
}

// w += Σ f α ψ for the changes, which are f α by label.
template <class Scalar>
void RowBlocks::write(int64_t example, Scalar* w) const {
    const std::vector<LabelMass>& changes = memory_->changes;
    const int32_t truth = truth_[example];
    Scalar sum = 0;
    for (const LabelMass& change : changes) sum += static_cast<Scalar>(change.alpha);
    features_.for_each(example, [&](int64_t f, double x) {
        Scalar* at = w + f * stride_;
        at[truth] += sum * static_cast<Scalar>(x);
        for (const LabelMass& change : changes) at[change.label] -= static_cast<Scalar>(change.alpha) * static_cast<Scalar>(x);
    });
}

template bool RowBlocks::visit_labels<double>(int64_t, const double*, double, Sweep&);

}  // namespace maxmargin
