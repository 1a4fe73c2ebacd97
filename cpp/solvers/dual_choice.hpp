// One output of each example, such that the cut made of them raises the dual most in a line search from w: problem DOP1 of
// Guzman-Rivera, Kohli and Batra (2013), where each output may be used in several cuts.
//
//     maximise  (C c − b − w·u)² / ‖u‖²      u = C g − w,  g = Σ_i s_i ψ_i,  c = Σ_i s_i Δ_i
//
// by coordinate ascent over the examples. u is one dense vector; what it has with an example's outputs is summed over their parts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planes/plane_space.hpp"

namespace maxmargin {

struct DualPoint {
    const double* w;
    double C;
    double linear;                  // b = Σ_k α_k c_k of the dual point w
    std::span<const double> weight; // s_i; empty where all are 1
};

// outputs[m] has at most one plane of each example: none where output m is the truth. Starts from output `start` of every example;
// returns the number of the output that each one ends with.
std::vector<int64_t> dual_choice(const PlaneSpace& space, std::span<const PlaneBatch* const> outputs, const DualPoint& point, int64_t start, int n_sweeps);

}  // namespace maxmargin
