// Rows of a dense matrix that is mostly 0, without the zeros, in any order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scores/features.hpp"

namespace maxmargin {

class SparseCopy {
  public:
    // Whether reading the copy is less work than reading the matrix.
    static bool pays(const Features& dense);
    // Row k of the copy is row order[k] of the matrix.
    SparseCopy(const Features& dense, std::span<const int32_t> order);
    Features view() const;

  private:
    int64_t n_features_;
    std::vector<int64_t> indptr_;
    std::vector<int32_t> indices_;
    std::vector<float> values32_;
    std::vector<double> values64_;
};

}  // namespace maxmargin
