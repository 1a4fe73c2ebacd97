// The planes of all blocks as one problem, for steps that move every α at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace maxmargin {

class JointBlocks {
  public:
    virtual ~JointBlocks() = default;

    // Planes are numbered through: those of block b are starts[b] … starts[b + 1] − 1.
    std::vector<size_t> starts{0};
    std::vector<double> budgets;  // C_i, by block
    std::vector<double> losses;   // Δ, by plane
    std::vector<double> alpha;    // when the problem was made; whoever moves it takes it away

    size_t n_blocks() const { return budgets.size(); }
    size_t n_planes() const { return losses.size(); }
    virtual int64_t n_weights() const = 0;

    // out[p] = Δ − w·ψ for all planes; −∞ for one that is never to have mass.
    virtual void values(const double* w, double* out) = 0;
    // out[k] = vector·ψ for the planes of one block.
    virtual void dots(size_t block, const double* vector, double* out) = 0;
    // vector += Σ coefficients[k] ψ over the planes of one block.
    virtual void add(size_t block, const double* coefficients, double* vector) = 0;
    // The blocks this stands for take over these α.
    virtual void take(const std::vector<double>& alpha) = 0;
};

}  // namespace maxmargin
