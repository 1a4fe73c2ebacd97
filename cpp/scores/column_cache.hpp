// Columns of a kernel matrix that may be needed again, as many as a budget of memory allows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "memory/large_pages.hpp"

namespace maxmargin {

template <class Scalar>
class ColumnCache {
  public:
    ColumnCache(int64_t n_rows, double budget_bytes)
        : n_rows_(n_rows), capacity_(n_rows > 0 ? static_cast<size_t>(budget_bytes / (static_cast<double>(n_rows) * sizeof(Scalar))) : 0) {}

    ColumnCache(ColumnCache&&) = default;
    ColumnCache& operator=(ColumnCache&&) = default;

    int64_t capacity() const { return static_cast<int64_t>(capacity_); }
    // A new use begins: columns found or made from now on stay until the next one begins.
    void begin() { ++now_; }
    // The column of a point, or null.
    const Scalar* find(int64_t point) {
        const auto found = columns_.find(point);
        if (found == columns_.end()) return nullptr;
        found->second.used = now_;
        return found->second.values;
    }
    // Room for the column of a point that has none; null where all columns are in use, and unless it is wanted at once at the
    // point's first time: to write a column down takes about as long as to compute it, and most points come once.
    Scalar* make(int64_t point, bool at_once = false) {
        if (!at_once && seen_.insert(point).second) return nullptr;
        if (columns_.size() >= capacity_ && !drop_old()) return nullptr;
        if (free_.empty()) add_slab();
        Scalar* values = free_.back();
        free_.pop_back();
        columns_[point] = {values, now_};
        return values;
    }
    // Gives up a column that was made and could not be filled.
    void forget(int64_t point) {
        const auto found = columns_.find(point);
        if (found == columns_.end()) return;
        free_.push_back(found->second.values);
        columns_.erase(found);
    }

  private:
    struct Column {
        Scalar* values;
        int64_t used;
    };
    // Makes room for a quarter of the columns, those that were not used for longest.
    bool drop_old() {
        std::vector<std::pair<int64_t, int64_t>> old;
        for (const auto& [point, column] : columns_)
            if (column.used < now_) old.emplace_back(column.used, point);
        const size_t n = std::min(old.size(), capacity_ / 4 + 1);
        std::partial_sort(old.begin(), old.begin() + static_cast<int64_t>(n), old.end());
        for (size_t k = 0; k < n; ++k) forget(old[k].second);
        return columns_.size() < capacity_;
    }

    // Columns lie in slabs that large pages suit.
    void add_slab() {
        constexpr size_t slab_bytes = size_t{16} << 20;
        const size_t length = static_cast<size_t>(n_rows_), n_left = capacity_ - columns_.size();
        const size_t n = std::clamp<size_t>(slab_bytes / (length * sizeof(Scalar)), 1, std::max<size_t>(n_left, 1));
        slabs_.emplace_back(LargePages<Scalar>().allocate(n * length), Free{n * length});
        for (size_t k = 0; k < n; ++k) free_.push_back(slabs_.back().get() + k * length);
    }
    struct Free {
        size_t length;
        void operator()(Scalar* memory) const { LargePages<Scalar>().deallocate(memory, length); }
    };

    int64_t n_rows_;
    size_t capacity_;
    int64_t now_ = 0;
    std::unordered_map<int64_t, Column> columns_;
    std::vector<std::unique_ptr<Scalar[], Free>> slabs_;
    std::vector<Scalar*> free_;
    std::unordered_set<int64_t> seen_;
};

}  // namespace maxmargin
