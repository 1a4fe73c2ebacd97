// Cuts of the 1-slack problem: sums of planes as sparse vectors, kept in blocks of coordinates.
//
// A cut is (c, g) = Σ_i s_i (Δ_i, ψ_i), a sum and not a mean: sums of integer features stay integers. Most entries of a late
// cut are then 1 or −1; of these only the place is kept, and other small integers take 16 bits, all without any loss. The new
// cut stands in one dense buffer; its Gram row is read from there, block by block, so that the buffer's block and w's stay in
// cache while all cuts stream past.
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
    double pending_at(int64_t weight) const { return !counts_.empty() ? counts_[weight] : !sums_.empty() ? sums_[weight] : 0.0; }

    // Keeps the pending cut. Returns its products with the cuts before it and, last, with itself.
    std::vector<double> keep(const Workers& workers);
    // w += Σ_k a_k g_k; rounded, if given, becomes the float copy of w. Returns ‖w‖².
    double add(std::span<const double> coefficients, double* w, float* rounded, const Workers& workers) const;
    // Ascending numbers.
    void remove(std::span<const int64_t> cuts);

    int64_t n_weights() const { return n_weights_; }
    int64_t size() const { return static_cast<int64_t>(cuts_.size()); }

  private:
    // Where a block's entries lie in offset: those of value 1, then of −1, then the rest; value is that of the rest's values.
    // A full block has a value for each of its coordinates, one after the other, as cuts of few weights have.
    struct BlockStart {
        int64_t plus = 0, minus = 0, rest = 0, value = 0;
        bool is_full = false;
    };
    struct Cut {
        double loss = 0.0;
        std::vector<BlockStart> start;  // one per block, and the end
        std::vector<uint16_t> offset;   // coordinate within the block; a large integer may take several entries
        std::vector<int16_t> narrow;    // the rest's values if all are integers of moderate size, else empty
        std::vector<double> wide;       // the values otherwise
    };
    template <class Number>
    static double dot_block(const Cut& cut, int64_t block, const Number* dense);
    static void add_block(const Cut& cut, int64_t block, double a, double* w);
    static void push_value(Cut& cut, uint16_t offset, double value);

    template <class Number>
    std::vector<Number>& empty_buffer();
    template <class Number, class Add>
    void sum_planes(int64_t n_planes, Add&& add);
    template <class Number>
    void compress(const std::vector<Number>& dense);
    template <class Number>
    std::vector<double> gram_row(const std::vector<Number>& dense, const Workers& workers) const;
    void prefetch_block(int64_t cut, int64_t block) const;

    int64_t n_weights_, n_blocks_;
    // The pending cut written out: in counts_ where the space has counts, else in sums_. The other is empty, both are at first.
    std::vector<int32_t> counts_;
    std::vector<double> sums_;
    Cut pending_;
    std::vector<Cut> cuts_;
};

}  // namespace maxmargin
