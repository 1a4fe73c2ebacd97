#include "inference/m_best.hpp"

#include <algorithm>
#include <limits>
#include <iterator>
#include <numeric>
#include <set>
#include <utility>

#include "threads/parallel.hpp"

namespace maxmargin {

namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

// The labellings with y_node = label, or those with y_node ≠ label.
struct Constraint {
    int32_t node, label;
    bool is_fixed;
};

struct Cell {
    std::vector<Constraint> constraints;
    std::vector<int32_t> labels;  // its best labelling
    double score;
    double key;  // cells are opened by this, highest first
    int32_t node, label;  // where the second best labelling differs, and how; with max-marginals only
    int64_t number;  // cells of equal keys are opened in the order they were made
};

struct OpensSooner {
    bool operator()(const Cell& a, const Cell& b) const { return a.key != b.key ? a.key > b.key : a.number < b.number; }
};

class Partition {
   public:
    Partition(const GraphShape& shape, const double* unary, LabellingSearch& search, int64_t n_best)
        : shape_(shape), unary_(unary), search_(search), n_best_(n_best), n_scores_(shape.label_offsets[shape.n_nodes]) {}

    Labellings best() {
        search_best({});
        while (n_missing() > 0 && !cells_.empty()) {
            heartbeat();
            Cell cell = std::move(cells_.extract(cells_.begin()).value());
            if (search_.has_max_marginals()) split_at_second_best(std::move(cell));
            else split_at_every_node(cell);
        }
        return sorted();
    }

   private:
    int64_t n_missing() const { return n_best_ - static_cast<int64_t>(found_.scores.size()); }

    // No more cells are kept than labellings are missing: each cell gives one at least.
    void keep(Cell cell) {
        cells_.insert(std::move(cell));
        if (static_cast<int64_t>(cells_.size()) > n_missing()) cells_.erase(std::prev(cells_.end()));
    }

    // All labels but the allowed ones are −∞.
    const double* constrained(const std::vector<Constraint>& constraints) {
        scores_.assign(unary_, unary_ + n_scores_);
        for (const Constraint& c : constraints) {
            double* of_node = scores_.data() + shape_.label_offsets[c.node];
            for (int k = 0; k < shape_.n_labels(c.node); ++k)
                if ((k == c.label) != c.is_fixed) of_node[k] = minus_infinity;
        }
        return scores_.data();
    }

    void list(const std::vector<int32_t>& labels, double score) {
        found_.labels.insert(found_.labels.end(), labels.begin(), labels.end());
        found_.scores.push_back(score);
    }

    void search_best(std::vector<Constraint> constraints) {
        Cell cell{std::move(constraints), std::vector<int32_t>(shape_.n_nodes), 0.0, 0.0, -1, -1, n_cells_++};
        const Found found = search_.best(constrained(cell.constraints), cell.labels.data());
        found_.is_exact = found_.is_exact && found.is_exact;
        cell.score = cell.key = found.score;
        if (search_.has_max_marginals()) {
            list(cell.labels, cell.score);
            if (n_missing() > 0) push_second_best(std::move(cell));
        } else {
            keep(std::move(cell));
        }
    }

    // scores_ must hold those of the cell.
    void push_second_best(Cell cell) {
        const Rival second = search_.second_best(shape_, scores_.data(), cell.labels.data());
        if (second.node < 0) return;
        cell.key = second.score;
        cell.node = second.node;
        cell.label = second.label;
        keep(std::move(cell));
    }

    // The best labelling of the cell is listed already. That of the part which has the second best is listed now.
    void split_at_second_best(Cell cell) {
        std::vector<Constraint> with = cell.constraints;
        with.push_back({cell.node, cell.label, true});
        search_best(std::move(with));
        if (n_missing() == 0) return;
        cell.constraints.push_back({cell.node, cell.label, false});
        cell.number = n_cells_++;
        constrained(cell.constraints);
        push_second_best(std::move(cell));
    }

    // Part i shares the labels of the best labelling up to node i − 1 and differs at node i.
    void split_at_every_node(const Cell& cell) {
        list(cell.labels, cell.score);
        if (n_missing() == 0) return;
        constrained(cell.constraints);
        std::vector<int32_t> free;
        for (int64_t i = 0; i < shape_.n_nodes; ++i) {
            const double* of_node = scores_.data() + shape_.label_offsets[i];
            if (std::count(of_node, of_node + shape_.n_labels(i), minus_infinity) < shape_.n_labels(i) - 1) free.push_back(static_cast<int32_t>(i));
        }
        std::vector<Constraint> shared = cell.constraints;
        for (const int32_t node : free) {
            heartbeat();
            std::vector<Constraint> part = shared;
            part.push_back({node, cell.labels[node], false});
            search_best(std::move(part));
            shared.push_back({node, cell.labels[node], true});
        }
    }

    // Cells are opened by scores that are rounded, or that an inexact search found.
    Labellings sorted() {
        const auto n = static_cast<int64_t>(found_.scores.size());
        std::vector<int64_t> order(n);
        std::iota(order.begin(), order.end(), int64_t{0});
        std::stable_sort(order.begin(), order.end(), [this](int64_t a, int64_t b) { return found_.scores[a] > found_.scores[b]; });
        Labellings result{{}, {}, found_.is_exact};
        for (const int64_t m : order) {
            const auto begin = found_.labels.begin() + m * shape_.n_nodes;
            result.labels.insert(result.labels.end(), begin, begin + shape_.n_nodes);
            result.scores.push_back(found_.scores[m]);
        }
        return result;
    }

    const GraphShape& shape_;
    const double* unary_;
    LabellingSearch& search_;
    int64_t n_best_, n_scores_;
    int64_t n_cells_ = 0;
    std::set<Cell, OpensSooner> cells_;
    Labellings found_;
    std::vector<double> scores_;
};

}  // namespace

Labellings m_best_labellings(const GraphShape& shape, const double* unary, LabellingSearch& search, int64_t n_best) {
    return Partition(shape, unary, search, n_best).best();
}

}  // namespace maxmargin
