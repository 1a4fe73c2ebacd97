// Planes of a built-in structure whose rows have products by a kernel alone.
//
// The features name the rows and w holds the scores of all of them, then the structure's table: whatever reads w reads scores. To move
// w by a plane takes the columns of the kernel matrix of its rows. Moves are put off until there are many, because the scores of all
// rows are read and written whether few or many rows move them; until then what they do to the rows of a plane is added when its rows
// are scored.
#pragma once

#include <memory>
#include <utility>

#include "planes/linear_space.hpp"
#include "scores/row_columns.hpp"

namespace maxmargin {

class KernelSpace final : public LinearSpace {
  public:
    // The space is one of features that name the rows.
    KernelSpace(const LinearSpace& rows, std::shared_ptr<RowColumns> columns) : LinearSpace(rows), columns_(std::move(columns)) {}

    bool has_vectors() const override { return false; }
    std::unique_ptr<PlaneScratch> scratch() const override;
    using LinearSpace::dots, LinearSpace::inner;
    void dots(const PlaneParts& planes, WeightsView w, PlaneScratch& scratch, double* out, int64_t next_row = -1, bool all_rows = false) const override;
    void inner(const PlaneParts& planes, size_t plane, PlaneScratch& scratch, double* out) const override;
    void forget(PlaneScratch& scratch) const override;
    void settle(MovingWeights w, PlaneScratch& scratch) const override;

  private:
    struct PutOff;

    void multiply_rows(int64_t row, std::span<const int64_t> rows, Scratch& memory) const override;
    void add_rows(const PlaneParts& planes, Scratch& memory, MovingWeights w) const override;

    std::shared_ptr<RowColumns> columns_;  // which come and go: for one thread at a time
};

}  // namespace maxmargin
