// Buffers of RowBlocks, for the files that implement it.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "solvers/row_blocks.hpp"

namespace maxmargin {

struct RowBlocks::Memory {
    std::vector<int32_t> order;             // of places in the list of active examples
    std::vector<char> rests;                // by place: whether it is active no more
    std::vector<int64_t> batch;             // with columns: the rows solved together,
    std::vector<double> among, change;      // the kernel among them, and what changed
    std::vector<double> worth;              // with columns: what each row would gain by itself
    std::vector<float> scores32;
    std::vector<double> scores64;
    std::vector<double> values;             // by label: Δ − w·ψ; −∞ at the truth
    std::vector<double> massless;           // the same if the example carried no mass
    std::vector<LabelCandidate> candidates; // labels of the visited example with their new α
    std::vector<LabelMass> kept;
    std::vector<LabelMass> changes;         // of α, by label
    std::vector<double> gram, gram_values, gram_alpha;

    template <class Scalar>
    std::vector<Scalar>& scores() {
        if constexpr (sizeof(Scalar) == sizeof(float)) return scores32;
        else return scores64;
    }
};

// memory.values = Δ − w·ψ by label, −∞ for the truth. Returns the highest.
template <class Scalar>
double RowBlocks::value_labels(int64_t example, const Scalar* scores, Memory& memory) const {
    const int32_t truth = truth_[example];
    const double true_score = scores[truth];
    memory.values.resize(n_labels_);
    double* values = memory.values.data();
    if (!labels_.loss.cost && !labels_.loss.weight) {
        for (int32_t l = 0; l < n_labels_; ++l) values[l] = 1.0 + (static_cast<double>(scores[l]) - true_score);
    } else {
        for (int32_t l = 0; l < n_labels_; ++l) {
            const double delta = labels_.loss(given_number(example), truth, l, n_labels_);
            values[l] = delta + factor(delta) * (static_cast<double>(scores[l]) - true_score);
        }
    }
    values[truth] = -std::numeric_limits<double>::infinity();
    double highest = values[0];
    for (int32_t l = 1; l < n_labels_; ++l) highest = std::max(highest, values[l]);
    return highest;
}

// Σ α F and Σ α of an example at memory.values.
inline double RowBlocks::paid_by(int64_t example, const Memory& memory, double& total) const {
    double paid = 0.0;
    total = 0.0;
    for (const LabelMass& mass : masses_.of(example)) {
        paid += mass.alpha * memory.values[mass.label];
        total += mass.alpha;
    }
    return paid;
}

}  // namespace maxmargin
