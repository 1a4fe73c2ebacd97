#include "planes/plane_parts.hpp"

#include <algorithm>
#include <utility>

namespace maxmargin {

namespace {
// Up to so many rows are looked through; among more, a row that is not near the last one is looked up.
constexpr int32_t few_rows = 128;
}  // namespace

int32_t RowIndex::find(int64_t row, std::span<const int64_t> rows) {
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
    // Rows that are still needed stand first, in the order in which the planes need them.
    std::vector<int32_t> places(rows.size(), -1);
    std::vector<int64_t> kept_rows;
    kept_rows.reserve(rows.size());
    const auto place_of = [&](int32_t slot) {
        if (places[slot] < 0) {
            places[slot] = static_cast<int32_t>(kept_rows.size());
            kept_rows.push_back(rows[slot]);
        }
        return places[slot];
    };
    size_t n_planes = 0;
    End begin, end;
    for (size_t p = 0; p < size(); ++p) {
        const End next = ends[p];
        if (!drop[p]) {
            for (uint32_t k = begin.node; k < next.node; ++k) nodes[end.node++] = {place_of(nodes[k].slot), nodes[k].label, nodes[k].coefficient};
            for (uint32_t k = begin.weight; k < next.weight; ++k) weights[end.weight++] = weights[k];
            ends[n_planes++] = end;
        }
        begin = next;
    }
    nodes.resize(end.node);
    weights.resize(end.weight);
    ends.resize(n_planes);
    n_used_rows = kept_rows.size();
    if (keeps_rows)
        for (size_t slot = 0; slot < rows.size(); ++slot) place_of(static_cast<int32_t>(slot));
    rows.assign(kept_rows.begin(), kept_rows.end());
    index_.clear();
    last_slot_ = 0;
    highest_row_ = rows.empty() ? -1 : *std::max_element(rows.begin(), rows.end());
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
