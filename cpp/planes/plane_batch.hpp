// Planes as they travel: the example, the loss and the output's integer code. Never a feature vector.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace maxmargin {

using Code = std::span<const int32_t>;

// Planes of any examples, codes laid end to end. A plane equal to the truth's (loss 0, ψ = 0) is left out.
struct PlaneBatch {
    std::vector<int32_t> examples;
    std::vector<double> losses;
    std::vector<int32_t> codes;
    std::vector<int64_t> offsets{0};
    std::vector<double> alpha;   // of each plane where a later run may go on from it, else empty
    std::vector<double> values;  // Δ − w·ψ of each plane at the w that it was found at, where the search knows it, else empty

    bool has_alpha() const { return alpha.size() == examples.size(); }
    bool has_values() const { return values.size() == examples.size(); }
    int64_t size() const { return static_cast<int64_t>(examples.size()); }
    Code code(int64_t k) const { return {codes.data() + offsets[k], static_cast<size_t>(offsets[k + 1] - offsets[k])}; }
    void add(int32_t example, double loss, Code code) {
        alpha.clear();
        examples.push_back(example);
        losses.push_back(loss);
        codes.insert(codes.end(), code.begin(), code.end());
        offsets.push_back(static_cast<int64_t>(codes.size()));
    }
    void append(const PlaneBatch& other) {
        for (int64_t k = 0; k < other.size(); ++k) add(other.examples[k], other.losses[k], other.code(k));
        values.insert(values.end(), other.values.begin(), other.values.end());
    }
};

}  // namespace maxmargin
