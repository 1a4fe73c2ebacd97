// One output of each example, such that the cut made of them raises the dual most in a line search from w: problem DOP1 of
// Guzman-Rivera, Kohli and Batra (2013), where each output may be used in several cuts.
//
//     maximise  (C c − b − w·u)² / ‖u‖²      u = C g − w,  g = Σ_i s_i ψ_i,  c = Σ_i s_i Δ_i
//
// by coordinate ascent over the examples. u is one dense vector; what it has with an example's outputs is summed over their parts.
// Products of the outputs with each other and with w are the same for all cuts, and computed once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "planes/plane_space.hpp"

namespace maxmargin {

class DualChoice {
  public:
    // outputs[m] has at most one plane of each example: none where output m is the truth. The space, w and the weights s_i of
    // the examples (empty where all are 1) outlive it.
    DualChoice(const PlaneSpace& space, std::vector<std::shared_ptr<const PlaneBatch>> outputs, std::span<const double> w, std::span<const double> sample_weight);

    // The number of the output that each example ends with, from output `start` of every one; `linear` is b = Σ_k α_k c_k of w.
    std::vector<int64_t> choose(double C, double linear, int64_t start, int n_sweeps);

    int64_t n_outputs() const { return static_cast<int64_t>(outputs_.size()); }

  private:
    // What is known of an example's outputs; its last plane stands for the truth, with nothing but zeros.
    struct Example {
        PlaneParts parts;
        std::vector<int32_t> slot;  // by output: which plane it is
        std::vector<double> losses, with_w;
        std::vector<double> gram;  // planes × planes
        size_t n_planes() const { return losses.size() - 1; }
        double inner(size_t p, size_t q) const { return p < n_planes() && q < n_planes() ? gram[p * n_planes() + q] : 0.0; }
        double distance2(size_t p, size_t q) const { return inner(p, p) + inner(q, q) - 2.0 * inner(p, q); }
    };
    // Where the ascent is.
    struct State {
        double C, linear;
        std::vector<double> u;
        std::vector<int64_t> chosen;
        double square = 0.0, along = 0.0, loss = 0.0;  // ‖u‖², w·u and C c
    };

    double weight(int64_t i) const { return sample_weight_.empty() ? 1.0 : sample_weight_[i]; }
    void sweep(State& state);
    void visit(int64_t i, State& state);
    // u += a (ψ_to − ψ_from)
    void move(const Example& example, size_t to, size_t from, double a, State& state);

    const PlaneSpace& space_;
    std::vector<std::shared_ptr<const PlaneBatch>> outputs_;
    std::span<const double> w_, sample_weight_;
    std::unique_ptr<PlaneScratch> scratch_;
    std::vector<Example> examples_;
    std::vector<double> with_u_, coefficients_;
};

}  // namespace maxmargin
