// One step of the proximal-point method on the dual of all blocks together, as a smooth problem in w.
//
//     max_α  D(α) − ‖α − ᾱ‖² / 2σ   =   min_w  φ(w) = ½‖w‖² + Σ_i max_{α_i} [ Σ_p α_ip F_ip(w) − q(α_i) − ‖α_i − ᾱ_i‖² / 2σ ]
//
// with F = Δ − w·ψ, q = (Σ_p α_ip)² / 4C_i for the squared hinge, and Σ_p α_ip ≤ C_i, q = 0 for the hinge. The maximum of a block is a
// projection: α_p = max(0, ᾱ_p + σ F_p − θ), where θ keeps to the budget. φ is strongly convex with ∇φ = w − Σ α ψ, and has the
// generalised Hessian I + σ Σ_i Ψ_iᵀ (I − c_i 11ᵀ) Ψ_i over the planes with α > 0: Newton's method on w takes a handful of steps
// where α could be moved plane by plane for ever (Rockafellar 1976; Li, Sun and Toh 2018 for such methods).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "solvers/joint_blocks.hpp"

namespace maxmargin {

class ProximalStep {
  public:
    ProximalStep(std::unique_ptr<JointBlocks> blocks, bool squared);

    struct Point {
        double value;     // φ(w) − ½‖w‖²
        double cost;      // Σ C_i H_i, or Σ C_i H_i², over the planes there are: the primal is this + ½‖w‖²
        double linear;    // Σ α Δ − Σ q: the dual is this − ½‖Σ α ψ‖²
        int64_t n_free;   // planes that the Hessian is over
    };
    // α becomes the maximum at w; sum becomes Σ α ψ.
    Point move(const double* w, double sigma, double* sum);

    // Writes rows u with Σ u uᵀ = the Hessian − I, for as many blocks from the first on as there is room for; returns how many rows.
    // `block` becomes the block to go on with, the number of blocks at the end.
    int64_t write_curvature(size_t& block, double* rows, int64_t room) const;
    // out = (Hessian − I) · vector.
    void multiply_curvature(const double* vector, double* out) const;
    // The most rows that one block has.
    int64_t most_rows() const { return most_rows_; }

    // ᾱ becomes α.
    void accept() { centre_ = alpha_; }
    // The blocks take over ᾱ.
    void take() { blocks_->take(centre_); }
    // Σ ᾱ / Σ Δ over what carries mass, or Σ C / Σ Δ where nothing does: a first σ, at which steps are as long as α is.
    double scale() const;

    int64_t n_weights() const { return blocks_->n_weights(); }
    int64_t n_blocks() const { return static_cast<int64_t>(blocks_->n_blocks()); }

  private:
    // Maximises over the α of one block, whose values are given; returns c, and −1 if no plane is free to move.
    double project(size_t block, const double* values);
    bool has_curvature(size_t block) const { return shares_[block] >= 0.0; }

    std::unique_ptr<JointBlocks> blocks_;
    bool squared_;
    double sigma_ = 1.0;
    int64_t most_rows_ = 0;
    std::vector<double> centre_, alpha_, values_;
    std::vector<double> shares_;  // by block: c of the Hessian; −1: it is not in it
    std::vector<double> sorted_;
};

}  // namespace maxmargin
