// Planes of one example that share a budget, with their dual variables and Gram matrix.
#pragma once

#include <cstdint>
#include <vector>

#include "planes/plane_space.hpp"

namespace maxmargin {

struct Block {
    struct Entry {
        double loss;
        int64_t idle;  // QPs since α was positive
        uint32_t begin, length;
    };
    // Its vectors belong to the pool.
    Block(int32_t of_example, double its_budget, Span within, Pool& pool)
        : example(of_example), budget(its_budget), span(within), parts(&pool), entries(&pool), alpha(&pool), gram(&pool), codes(&pool) {}

    int32_t example;
    double budget;      // C_i
    int64_t quiet = 0;  // visits since α last moved
    Span span;          // the places of the code at which its planes may differ from the truth
    bool may_part = true;  // since its stretches were last looked at, a plane left or the span grew
    PlaneParts parts;
    PoolVector<Entry> entries;
    PoolVector<double> alpha;
    PoolVector<double> gram;  // entries × entries
    PoolVector<int32_t> codes;

    size_t size() const { return entries.size(); }
    Code code(size_t e) const { return {codes.data() + entries[e].begin, entries[e].length}; }
    // Whether it is a stretch of its example, outside of which codes are the truth's.
    bool has_span() const { return span.end > span.begin; }
    // The plane with this code and loss, or size().
    size_t find(Code code, double loss) const;
    bool has(Code code, double loss) const { return find(code, loss) < size(); }
    double total() const;
    // What is not spent of the budget.
    double left() const;
    int64_t n_carriers() const;
    // Keeps the plane that is written out last: its products with the others come from the space.
    void keep(Code code, double loss, const PlaneSpace& space, PlaneScratch& scratch);
    void erase(const std::vector<bool>& drop);
    void widen(Span to);
    // Blocks lie all over the memory: what the next visits read is fetched during this one.
    void fetch_data() const;

  private:
    bool is_same(Code one, Code other) const;
};

}  // namespace maxmargin
