// The M best labellings by a search that has bounds of max-marginals in place of them.
//
// Below its best labelling y a cell is split at every node (Lawler 1972): part i has the labellings that share the labels of y at the nodes
// before i and differ at i, so that no two parts meet. None of part i scores more than the largest bound of the labels of i other than y_i. Parts
// wait for their search by these bounds among the cells that wait by the scores of their labellings: most are never searched. A search may
// end as soon as its bound falls below the labellings that are known, as many as are missing.
//
// Nodes with low bounds come first: the parts that are searched share most labels of y, and little is left to be found.
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
        double score;
        std::vector<Part> parts;  // by ascending bound: the last one is searched next
    };
    struct Waiting {
        double key;  // the score of a cell that is not listed yet, or the bound of the last part of one that is
        bool is_listed;
        int64_t number;
        std::shared_ptr<Cell> cell;
    };
    struct OpensSooner {
        bool operator()(const Waiting& a, const Waiting& b) const;
    };

    void wait(double key, bool is_listed, std::shared_ptr<Cell> cell);
    void search(std::vector<Constraint> constraints);
    void bound_parts(const double* scores, Cell& cell);
    void search_last_part(const std::shared_ptr<Cell>& cell);
    double floor() const;

    LabellingSearch& search_;
    std::set<Waiting, OpensSooner> waiting_;
    std::multiset<double> known_;  // the best scores of cells that are not listed, no more than labellings are missing
    int64_t n_waited_ = 0;
    double highest_open_ = -std::numeric_limits<double>::infinity();  // the largest bound of the searches that were not exact
};

}  // namespace maxmargin
