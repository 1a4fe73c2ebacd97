#include "inference/bounded_partition.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "threads/parallel.hpp"

namespace maxmargin {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity(), minus_infinity = -infinity;

// So many parts are searched for the next labelling where the list is not exact, if one is known: more found better ones on 1 of 30
// proteins.
constexpr int64_t most_in_vain = 30;

}  // namespace

BoundedPartition::BoundedPartition(const GraphShape& shape, const double* unary, LabellingSearch& search, int64_t n_best)
    : Partition(shape, unary, n_best), search_(search) {}

Labellings BoundedPartition::best() {
    search({});
    while (n_missing() > 0 && !(known_.empty() && listed_.empty())) {
        heartbeat();
        if (is_part_next()) search_next_part();
        else list_next();
    }
    return sorted(n_missing() > 0 ? highest_open_ < infinity : highest_open_ <= lowest_);
}

// What a labelling has to score more than to be listed, as long as one is missing. It never falls.
double BoundedPartition::floor() const { return static_cast<int64_t>(known_.size()) < n_missing() ? minus_infinity : known_.rbegin()->key; }

bool BoundedPartition::is_part_next() const {
    if (known_.empty() || listed_.empty()) return known_.empty();
    return listed_.begin()->key > known_.begin()->key && n_in_vain_ < most_in_vain;
}

void BoundedPartition::list_next() {
    const Waiting next = std::move(known_.extract(known_.begin()).value());
    list(next.cell->best, next.key);
    lowest_ = std::min(lowest_, next.key);
    n_in_vain_ = 0;
    if (!next.cell->parts.empty()) listed_.insert({next.cell->parts.back().bound, n_waited_++, next.cell});
}

void BoundedPartition::search_next_part() {
    const std::shared_ptr<Cell> cell = std::move(listed_.extract(listed_.begin()).value().cell);
    const Part part = cell->parts.back();
    cell->parts.pop_back();
    if (static_cast<int64_t>(known_.size()) == n_missing() && part.bound <= floor()) return;
    if (!cell->parts.empty()) listed_.insert({cell->parts.back().bound, n_waited_++, cell});
    std::vector<Constraint> constraints = cell->constraints;
    for (const Part& before : cell->parts) constraints.push_back({before.node, cell->best[before.node], true});
    constraints.push_back({part.node, cell->best[part.node], false});
    search(std::move(constraints));
}

void BoundedPartition::search(std::vector<Constraint> constraints) {
    auto cell = std::make_shared<Cell>(Cell{std::move(constraints), std::vector<int32_t>(shape_.n_nodes), {}});
    const double* scores = constrained(cell->constraints);
    const bool is_in_vain = highest_open_ > floor();  // the list is not exact, however long this search is
    n_in_vain_ += is_in_vain;
    const Found found = search_.best_above(floor(), is_in_vain, scores, cell->best.data());
    // Scores beyond the range of numbers order nothing.
    const bool is_missed = !(found.score > minus_infinity);
    if (is_missed) highest_open_ = infinity;
    else if (!found.is_exact) highest_open_ = std::max(highest_open_, found.bound);
    if (is_missed || found.score <= floor()) return;
    if (n_missing() > 1) bound_parts(scores, *cell);
    known_.insert({found.score, n_waited_++, std::move(cell)});
    if (static_cast<int64_t>(known_.size()) > n_missing()) known_.erase(std::prev(known_.end()));
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

}  // namespace maxmargin
