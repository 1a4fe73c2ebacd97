// Feature rows laid out for kernel products: dense ones in panels, sparse ones as they are.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "memory/large_pages.hpp"
#include "scores/features.hpp"
#include "scores/kernel_function.hpp"

namespace maxmargin {

template <class Scalar>
class KernelPoints {
  public:
    // For the RBF kernel all features are shifted by −centre, which changes no distance, where rows are dense.
    KernelPoints(const Features& rows, const KernelFunction& function, const double* centre);

    int64_t size() const { return n_rows_; }
    int64_t n_features() const { return n_features_; }
    bool is_sparse() const { return !indptr_.empty(); }

    // Panel of rows 16 p … 16 p + 15; those behind the last row are 0.
    const Scalar* panel(int64_t p) const { return panels_.data() + p * panel_rows * n_features_; }
    const Scalar* terms() const { return terms_.data(); }

    struct SparseRow {
        const int32_t* indices;
        const Scalar* entries;
        int64_t length;
    };
    SparseRow sparse_row(int64_t row) const {
        return {indices_.data() + indptr_[row], entries_.data() + indptr_[row], indptr_[row + 1] - indptr_[row]};
    }

    // Lays the listed points out in tiles of so many, feature by feature, with their terms; places behind the last point are 0.
    void write_tiles(std::span<const int64_t> ids, int tile_size, std::vector<Scalar>& tiles, std::vector<Scalar>& terms) const;

  private:
    template <class Visit>
    void for_each(int64_t row, Visit&& visit) const;

    int64_t n_rows_, n_features_;
    std::vector<Scalar, LargePages<Scalar>> panels_;
    std::vector<int64_t> indptr_;
    std::vector<int32_t> indices_;
    std::vector<Scalar> entries_;
    std::vector<Scalar, LargePages<Scalar>> terms_;  // of whole panels
};

}  // namespace maxmargin
