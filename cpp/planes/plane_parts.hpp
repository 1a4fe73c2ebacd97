// Planes of one example written out over its parts: what is read again and again is found once.
//
// ψ = Σ coefficient · (features of a row, placed at a label) + Σ coefficient · (one weight). A combination of planes of the same
// example has the same form.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "memory/pool.hpp"

namespace maxmargin {

struct NodeTerm {
    int32_t slot;  // which of the rows
    int32_t label;
    double coefficient;
};

struct WeightTerm {
    int64_t weight;
    double coefficient;
};

// Where rows stand among many. A copy is empty, and made anew when it is needed.
class RowIndex {
  public:
    RowIndex() = default;
    RowIndex(const RowIndex&) {}
    RowIndex(RowIndex&&) = default;
    RowIndex& operator=(const RowIndex&) {
        slots_.reset();
        return *this;
    }
    RowIndex& operator=(RowIndex&&) = default;

    void clear() { slots_.reset(); }
    // The slot of a row, or −1.
    int32_t find(int64_t row, std::span<const int64_t> rows);
    void add(int64_t row, int32_t slot) {
        if (slots_) slots_->emplace(row, slot);
    }

  private:
    std::unique_ptr<std::unordered_map<int64_t, int32_t>> slots_;
};

struct PlaneParts {
    struct End {
        uint32_t node = 0, weight = 0;
    };
    PlaneParts() = default;
    explicit PlaneParts(Pool* pool) : rows(pool), nodes(pool), weights(pool), ends(pool) {}

    PoolVector<int64_t> rows;  // each once
    size_t n_used_rows = 0;     // the first ones: planes need no row beyond them
    bool keeps_rows = false;    // also those that no plane needs any more
    int32_t labels_per_row = 2; // that one plane may have: the truth's and another, more where a plane is a sum of several
    PoolVector<NodeTerm> nodes;
    PoolVector<WeightTerm> weights;
    PoolVector<End> ends;  // by plane: where its terms end

    size_t size() const { return ends.size(); }
    End begin(size_t plane) const { return plane == 0 ? End{} : ends[plane - 1]; }
    std::span<const NodeTerm> nodes_of(size_t plane) const { return {nodes.data() + begin(plane).node, nodes.data() + ends[plane].node}; }
    std::span<const WeightTerm> weights_of(size_t plane) const { return {weights.data() + begin(plane).weight, weights.data() + ends[plane].weight}; }
    // The slot of a row that a plane needs.
    int32_t slot_of(int64_t row);
    // Makes a row one of the rows, whether or not a plane needs it.
    void cover(int64_t row) { find_or_add(row); }
    void close_plane() { ends.push_back({static_cast<uint32_t>(nodes.size()), static_cast<uint32_t>(weights.size())}); }
    // Forgets the last plane, which brought the rows from n_rows on.
    void pop(size_t n_rows);
    // Forgets planes, and rows that no other plane needs unless they are to be kept.
    void erase(const std::vector<bool>& drop);
    void clear();

  private:
    int32_t find_or_add(int64_t row);

    RowIndex index_;
    int32_t last_slot_ = 0;  // terms of one row mostly follow each other, and rows each other from plane to plane
    int64_t highest_row_ = -1;
};

}  // namespace maxmargin
