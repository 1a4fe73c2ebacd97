// The M best labellings by a search that has bounds of max-marginals in place of them.
//
// Below its best labelling y a cell is split at every node (Lawler 1972): part i has the labellings that share the labels of y at the nodes
// before i and differ at i, so that no two parts meet. None of part i scores more than the largest bound of the labels of i other than y_i. Parts
// are searched by these bounds, highest first, until the best labelling that is known and not listed is above them: most are never
// searched. A search may end as soon as its bound falls below the labellings that are known, as many as are missing.
//
// Nodes with low bounds come first: the parts that are searched share most labels of y, and little is left to be found.
//
// Where searches stay open bounds are too high, and tell little. The list is not exact then, and only some parts are searched, briefly.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <vector>

#include "inference/partition.hpp"
#include "inference/search.hpp"

namespace maxmargin {

class BoundedPartition : Partition {
   public:
    BoundedPartition(const GraphShape& shape, const double* unary, LabellingSearch& search, int64_t n_best);
    Labellings best();

   private:
    struct Part {
        int32_t node;
        double bound;
    };
    struct Cell {
        std::vector<Constraint> constraints;
        std::vector<int32_t> best;  // labelling
        std::vector<Part> parts;    // by ascending bound: the last one is searched next
    };
    struct Waiting {
        double key;
        int64_t number;  // of equal keys the first comes first
        std::shared_ptr<Cell> cell;
        bool operator<(const Waiting& other) const { return key != other.key ? key > other.key : number < other.number; }
    };

    double floor() const;
    bool is_part_next() const;
    void list_next();
    void search_next_part();
    void search(std::vector<Constraint> constraints);
    void bound_parts(const double* scores, Cell& cell);

    LabellingSearch& search_;
    std::set<Waiting> known_;   // cells that are not listed, by the score of their best; no more than labellings are missing
    std::set<Waiting> listed_;  // cells that are, by the bound of their next part
    int64_t n_waited_ = 0, n_in_vain_ = 0;
    double highest_open_ = -std::numeric_limits<double>::infinity();  // the largest bound of the searches that were not exact
    double lowest_ = std::numeric_limits<double>::infinity();  // of the scores listed: a later one is higher where the search of its cell stayed open
};

}  // namespace maxmargin
