// Planes of a model written in Python: the sparse difference vector itself is the code.
//
// Code: nnz ascending weight numbers, then nnz doubles in 2 · nnz integers. It owns nothing beyond itself, so caches and
// cuts treat it like any other code.
#pragma once

#include "planes/plane_space.hpp"

namespace maxmargin {

class VectorSpace final : public PlaneSpace {
  public:
    VectorSpace(int64_t n_examples, int64_t n_weights, Rescaling rescaling)
        : PlaneSpace(rescaling), n_examples_(n_examples), n_weights_(n_weights) {}

    int64_t n_examples() const override { return n_examples_; }
    int64_t n_weights() const override { return n_weights_; }
    std::unique_ptr<PlaneScratch> scratch() const override { return std::make_unique<PlaneScratch>(); }

    using PlaneSpace::add, PlaneSpace::dots, PlaneSpace::inner;
    void write(int32_t example, Code code, double loss, PlaneParts& planes, PlaneScratch& scratch) const override;
    void dots(const PlaneParts& planes, WeightsView w, PlaneScratch& scratch, double* out, int64_t next_row = -1, bool all_rows = false) const override;
    void add(const PlaneParts& planes, const double* coefficients, MovingWeights w, PlaneScratch& scratch) const override;
    void clip(const PlaneParts& planes, MovingWeights w) const override;
    void inner(const PlaneParts& planes, size_t plane, PlaneScratch& scratch, double* out) const override;

    static std::vector<int32_t> encode(std::span<const int32_t> indices, std::span<const double> values);

  protected:
    bool is_code(int32_t example, Code code) const override;
    void add_difference(int32_t example, Code code, double a, double* w, PlaneScratch& scratch) const override;

  private:
    int64_t n_examples_, n_weights_;
};

}  // namespace maxmargin
