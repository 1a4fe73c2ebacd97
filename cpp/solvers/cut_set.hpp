// Cuts of the 1-slack problem: sums of planes as sparse vectors, kept in blocks of coordinates.
//
// A cut is (c, g) = Σ_i s_i (Δ_i, ψ_i), a sum and not a mean: sums of integer features stay integers, and a cut of small
// integers is stored in 16 bits an entry without any loss. The new cut stands in one dense buffer; its Gram row is read
// from there, block by block, so that the buffer's block and w's stay in cache while all cuts stream past.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planes/plane_space.hpp"
#include "threads/parallel.hpp"

namespace maxmargin {

class CutSet {
  public:
    explicit CutSet(int64_t n_weights);

    // Makes the sum of planes the pending cut, in place of any other.
    void assemble(const PlaneSpace& space, const PlaneBatch& planes, const double* sample_weight);
    // Makes a sum formed elsewhere the pending cut.
    void load(double loss, std::span<const double> sum);
    double pending_loss() const { return pending_.loss; }
    // w·g of the pending cut.
    double pending_dot(const double* w) const;
    // w += a g
    void add_pending(double a, double* w) const;
    double pending_at(int64_t weight) const { return buffer_[weight]; }

    // Keeps the pending cut. Returns its products with the cuts before it and, last, with itself.
    std::vector<double> keep(const Workers& workers);
    // w += Σ_k a_k g_k; rounded, if given, becomes the float copy of w. Returns ‖w‖².
    double add(std::span<const double> coefficients, double* w, float* rounded, const Workers& workers) const;
    // Ascending numbers.
    void remove(std::span<const int64_t> cuts);

    int64_t n_weights() const { return n_weights_; }
    int64_t size() const { return static_cast<int64_t>(cuts_.size()); }
    int64_t n_entries() const;

  private:
    struct Cut {
        double loss = 0.0;
        std::vector<int64_t> block_start;  // entries of block b: block_start[b] … block_start[b + 1] − 1
        std::vector<uint16_t> offset;      // coordinate within the block
        std::vector<int16_t> narrow;       // the values if all are small integers, else empty
        std::vector<double> wide;          // the values otherwise
    };
    void compress();
    void clear_buffer();
    void prefetch_block(int64_t cut, int64_t block) const;
    double dot_block(const Cut& cut, int64_t block, const double* dense) const;

    int64_t n_weights_, n_blocks_;
    std::vector<double> buffer_;
    Cut pending_;
    std::vector<Cut> cuts_;
};

}  // namespace maxmargin
