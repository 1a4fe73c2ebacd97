// Buffers of LinearSpace, for the files that implement it.
#pragma once

#include "planes/linear_space.hpp"

namespace maxmargin {

struct LinearSpace::Scratch final : PlaneScratch {
    Parts parts;
    std::vector<double> dense;   // n_weights zeros between uses
    std::vector<double> row;     // n_features zeros between uses
    std::vector<double> products;
    struct LabelSum {
        int32_t label;
        double coefficient;
    };
    std::vector<LabelSum> sums;  // by slot: coefficients of its labels
    std::vector<size_t> n_sums;
    std::vector<float> scores32;
    std::vector<double> scores64;
};

}  // namespace maxmargin
