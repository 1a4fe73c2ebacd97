// Buffers of LinearSpace, for the files that implement it.
#pragma once

#include "memory/lazy_zeros.hpp"
#include "planes/linear_space.hpp"

namespace maxmargin {

template <class Scalar>
struct LinearSpace::PassMemory {
    std::vector<Scalar> node;
    std::vector<Scalar> plain;  // the same before a search wrote to them, where they are needed
    int64_t first_row = 0;      // of both
    std::vector<int32_t> code;
    std::vector<Scalar> table;
    bool has_table = false;            // for search_within: whether the table is that of w, but for
    std::vector<int64_t> moved_table;  // these entries
    SearchMemory<Scalar> search;
    std::vector<int64_t> slots;
    Parts parts;
};

struct LinearSpace::Scratch final : PlaneScratch {
    Parts parts;
    LazyZeros dense;             // n_weights zeros between uses
    std::vector<double> row;     // n_features zeros between uses
    std::vector<uint8_t> counts; // the same, for rows of ones
    std::vector<double> products;
    std::vector<double> by_label;  // zeros between uses
    struct LabelSum {
        int32_t label;
        double coefficient;
    };
    std::vector<LabelSum> sums;  // by slot: coefficients of its labels
    std::vector<size_t> n_sums;
    std::vector<float> scores32;
    std::vector<double> scores64;
    PassMemory<float> search32;
    PassMemory<double> search64;
};

}  // namespace maxmargin
