#include "planes/plane_parts.hpp"

#include <algorithm>
#include <utility>

namespace maxmargin {

namespace {
// Up to so many rows are looked through; among more, a row that is not near the last one is looked up.
constexpr int32_t few_rows = 128;
}  // namespace

int32_t RowIndex::find(int64_t row, const std::vector<int64_t>& rows) {
    if (!slots_) {
        slots_ = std::make_unique<std::unordered_map<int64_t, int32_t>>(2 * rows.size());
        for (size_t slot = 0; slot < rows.size(); ++slot) slots_->emplace(rows[slot], static_cast<int32_t>(slot));
    }
    const auto found = slots_->find(row);
    return found == slots_->end() ? -1 : found->second;
}

int32_t PlaneParts::slot_of(int64_t row) {
    const int32_t slot = find_or_add(row);
    n_used_rows = std::max(n_used_rows, static_cast<size_t>(slot) + 1);
    return slot;
}

int32_t PlaneParts::find_or_add(int64_t row) {
    const auto n = static_cast<int32_t>(rows.size());
    for (int32_t k = 0; k < std::min(n, few_rows) && row <= highest_row_; ++k) {
        const int32_t slot = last_slot_ + k < n ? last_slot_ + k : last_slot_ + k - n;
        if (rows[slot] == row) return last_slot_ = slot;
    }
    if (n > few_rows && row <= highest_row_)
        if (const int32_t slot = index_.find(row, rows); slot >= 0) return last_slot_ = slot;
    rows.push_back(row);
    index_.add(row, n);
    highest_row_ = std::max(highest_row_, row);
    return last_slot_ = n;
}

void PlaneParts::pop(size_t n_rows) {
    ends.pop_back();
    const End end = begin(size());
    nodes.resize(end.node);
    weights.resize(end.weight);
    if (!keeps_rows) rows.resize(n_rows);
    index_.clear();
    n_used_rows = std::min(n_used_rows, rows.size());
    last_slot_ = 0;
}

void PlaneParts::erase(const std::vector<bool>& drop) {
    PlaneParts kept;
    kept.keeps_rows = keeps_rows;
    kept.labels_per_row = labels_per_row;
    for (size_t p = 0; p < size(); ++p) {
        if (drop[p]) continue;
        for (const NodeTerm& term : nodes_of(p)) kept.nodes.push_back({kept.slot_of(rows[term.slot]), term.label, term.coefficient});
        kept.weights.insert(kept.weights.end(), weights_of(p).begin(), weights_of(p).end());
        kept.close_plane();
    }
    if (keeps_rows)
        for (const int64_t row : rows) kept.cover(row);
    *this = std::move(kept);
}

void PlaneParts::clear() {
    rows.clear();
    index_.clear();
    nodes.clear();
    weights.clear();
    ends.clear();
    labels_per_row = 2;
    last_slot_ = 0;
    highest_row_ = -1;
    n_used_rows = 0;
}

}  // namespace maxmargin
