#include "inference/bounded_partition.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "threads/parallel.hpp"

namespace maxmargin {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity(), minus_infinity = -infinity;

}  // namespace

BoundedPartition::BoundedPartition(const GraphShape& shape, const double* unary, LabellingSearch& search, int64_t n_best)
    : Partition(shape, unary, n_best), search_(search) {}

// Of equal keys cells come before parts, which cannot give more than these, and else the first one.
bool BoundedPartition::OpensSooner::operator()(const Waiting& a, const Waiting& b) const {
    if (a.key != b.key) return a.key > b.key;
    return a.is_listed != b.is_listed ? b.is_listed : a.number < b.number;
}

Labellings BoundedPartition::best() {
    search({});
    double lowest = infinity;  // of the scores listed: a later one may be higher where the search of its cell stayed open
    while (n_missing() > 0 && !waiting_.empty()) {
        heartbeat();
        const Waiting next = std::move(waiting_.extract(waiting_.begin()).value());
        if (next.is_listed) {
            search_last_part(next.cell);
            continue;
        }
        list(next.cell->best, next.cell->score);
        lowest = std::min(lowest, next.cell->score);
        known_.erase(known_.find(next.cell->score));
        if (n_missing() > 0 && !next.cell->parts.empty()) wait(next.cell->parts.back().bound, true, next.cell);
    }
    return sorted(n_missing() > 0 ? highest_open_ < infinity : highest_open_ <= lowest);
}

// What a labelling has to score more than to be listed, as long as one is missing. It never falls.
double BoundedPartition::floor() const { return static_cast<int64_t>(known_.size()) < n_missing() ? minus_infinity : *known_.begin(); }

void BoundedPartition::wait(double key, bool is_listed, std::shared_ptr<Cell> cell) {
    waiting_.insert({key, is_listed, n_waited_++, std::move(cell)});
    while (!waiting_.empty() && waiting_.rbegin()->key < floor()) waiting_.erase(std::prev(waiting_.end()));
}

void BoundedPartition::search(std::vector<Constraint> constraints) {
    auto cell = std::make_shared<Cell>(Cell{std::move(constraints), std::vector<int32_t>(shape_.n_nodes), 0.0, {}});
    const double* scores = constrained(cell->constraints);
    const Found found = search_.best_above(floor(), scores, cell->best.data());
    // Scores beyond the range of numbers order nothing.
    const bool is_missed = !(found.score > minus_infinity);
    if (is_missed) highest_open_ = infinity;
    else if (!found.is_exact) highest_open_ = std::max(highest_open_, found.bound);
    if (is_missed || found.score <= floor()) return;
    cell->score = found.score;
    known_.insert(found.score);
    if (static_cast<int64_t>(known_.size()) > n_missing()) known_.erase(known_.begin());
    if (n_missing() > 1) bound_parts(scores, *cell);
    wait(found.score, false, std::move(cell));
}

// One for each node that has another label to take.
void BoundedPartition::bound_parts(const double* scores, Cell& cell) {
    std::vector<double> bounds(shape_.label_offsets[shape_.n_nodes], infinity);
    search_.bound_max_marginals(bounds.data());
    for (int32_t i = 0; i < shape_.n_nodes; ++i) {
        const int64_t begin = shape_.label_offsets[i];
        bool is_free = false;
        double bound = minus_infinity;
        for (int32_t k = 0; k < shape_.n_labels(i); ++k) {
            if (k == cell.best[i] || scores[begin + k] == minus_infinity) continue;
            is_free = true;
            bound = std::max(bound, bounds[begin + k]);
        }
        if (is_free) cell.parts.push_back({i, bound});
    }
    std::stable_sort(cell.parts.begin(), cell.parts.end(), [](const Part& a, const Part& b) { return a.bound < b.bound; });
}

void BoundedPartition::search_last_part(const std::shared_ptr<Cell>& cell) {
    const Part part = cell->parts.back();
    cell->parts.pop_back();
    if (static_cast<int64_t>(known_.size()) == n_missing() && part.bound <= floor()) return;
    std::vector<Constraint> constraints = cell->constraints;
    for (const Part& before : cell->parts) constraints.push_back({before.node, cell->best[before.node], true});
    constraints.push_back({part.node, cell->best[part.node], false});
    if (!cell->parts.empty()) wait(cell->parts.back().bound, true, cell);
    search(std::move(constraints));
}

}  // namespace maxmargin
