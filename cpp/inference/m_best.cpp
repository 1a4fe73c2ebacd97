#include "inference/m_best.hpp"

#include <iterator>
#include <set>
#include <utility>

#include "inference/bounded_partition.hpp"
#include "inference/partition.hpp"
#include "threads/parallel.hpp"

namespace maxmargin {

namespace {

struct Cell {
    std::vector<Constraint> constraints;
    std::vector<int32_t> best;         // labelling, which is listed already
    double second_score = 0.0;         // of the second best labelling
    int32_t node = -1, label = -1;     // where that differs, and how
    int64_t number = 0;                // cells with equal second scores are opened in the order they were made
};

struct OpensSooner {
    bool operator()(const Cell& a, const Cell& b) const { return a.second_score != b.second_score ? a.second_score > b.second_score : a.number < b.number; }
};

class MaxMarginalPartition : Partition {
   public:
    MaxMarginalPartition(const GraphShape& shape, const double* unary, LabellingSearch& search, int64_t n_best)
        : Partition(shape, unary, n_best), search_(search) {}

    Labellings best() {
        list_best({});
        while (n_missing() > 0 && !cells_.empty()) {
            heartbeat();
            split(std::move(cells_.extract(cells_.begin()).value()));
        }
        return sorted(is_exact_);
    }

   private:
    void list_best(std::vector<Constraint> constraints) {
        Cell cell{std::move(constraints), std::vector<int32_t>(shape_.n_nodes)};
        const Found found = search_.best(constrained(cell.constraints), cell.best.data());
        is_exact_ = is_exact_ && found.is_exact;
        list(cell.best, found.score);
        if (n_missing() > 0) keep(std::move(cell));
    }

    // No more cells are kept than labellings are missing: each gives one.
    void keep(Cell cell) {
        const Rival second = search_.second_best(shape_, constrained(cell.constraints), cell.best.data());
        if (second.node < 0) return;
        cell.second_score = second.score;
        cell.node = second.node;
        cell.label = second.label;
        cell.number = n_cells_++;
        cells_.insert(std::move(cell));
        if (static_cast<int64_t>(cells_.size()) > n_missing()) cells_.erase(std::prev(cells_.end()));
    }

    // The part that has the second best labelling, and the rest.
    void split(Cell cell) {
        std::vector<Constraint> with = cell.constraints;
        with.push_back({cell.node, cell.label, true});
        list_best(std::move(with));
        if (n_missing() == 0) return;
        cell.constraints.push_back({cell.node, cell.label, false});
        keep(std::move(cell));
    }

    LabellingSearch& search_;
    std::set<Cell, OpensSooner> cells_;
    int64_t n_cells_ = 0;
    bool is_exact_ = true;
};

}  // namespace

Labellings m_best_labellings(const GraphShape& shape, const double* unary, LabellingSearch& search, int64_t n_best) {
    if (search.has_max_marginals()) return MaxMarginalPartition(shape, unary, search, n_best).best();
    return BoundedPartition(shape, unary, search, n_best).best();
}

}  // namespace maxmargin
