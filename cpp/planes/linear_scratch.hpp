// Buffers of LinearSpace, for the files that implement it.
#pragma once

#include <span>

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

struct LinearSpace::Scratch : PlaneScratch {
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
    std::vector<LabelSum> sums;  // by slot, so many places each: coefficients of its labels
    size_t sums_per_slot = 0;
    std::vector<size_t> n_sums;
    std::span<const LabelSum> sums_of(size_t slot) const { return {sums.data() + slot * sums_per_slot, n_sums[slot]}; }
    std::vector<float> scores32;  // of the rows of the last dots
    std::vector<double> scores64;
    PassMemory<float> search32;
    PassMemory<double> search64;
};

// out[p] = w·ψ_p, where node_score(term) is the score of a row and label.
template <class Scalar, class NodeScore>
void sum_terms(const PlaneParts& planes, const Scalar* w, NodeScore&& node_score, double* out) {
    for (size_t p = 0; p < planes.size(); ++p) {
        double sum = 0.0;
        for (const NodeTerm& term : planes.nodes_of(p)) sum += term.coefficient * node_score(term);
        for (const WeightTerm& term : planes.weights_of(p)) sum += term.coefficient * static_cast<double>(w[term.weight]);
        out[p] = sum;
    }
}

}  // namespace maxmargin
