// What both ways of splitting all labellings of a graph into cells share: scores under constraints, and the list of what was found.
#pragma once

#include <cstdint>
#include <vector>

#include "inference/m_best.hpp"
#include "inference/pairwise.hpp"

namespace maxmargin {

// The labellings with y_node = label, or those with y_node ≠ label.
struct Constraint {
    int32_t node, label;
    bool is_fixed;
};

class Partition {
   public:
    Partition(const GraphShape& shape, const double* unary, int64_t n_best) : shape_(shape), unary_(unary), n_best_(n_best) {}

   protected:
    int64_t n_missing() const { return n_best_ - static_cast<int64_t>(found_.scores.size()); }
    // Unary scores with −∞ for all labels but the allowed ones, until the next call.
    const double* constrained(const std::vector<Constraint>& constraints);
    void list(const std::vector<int32_t>& labels, double score);
    // What was listed, best first: cells are opened by scores that are rounded, or that an inexact search found.
    Labellings sorted(bool is_exact) const;

    const GraphShape& shape_;
    const double* unary_;

   private:
    int64_t n_best_;
    Labellings found_;
    std::vector<double> scores_;
};

}  // namespace maxmargin
