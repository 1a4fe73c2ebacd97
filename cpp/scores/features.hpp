// Row features as the caller holds them: CSR or dense, float32 or float64. A view: the owner outlives it.
#pragma once

#include <cstdint>

namespace maxmargin {

struct Features {
    int64_t n_rows = 0;
    int64_t n_features = 0;
    // CSR when indptr is set, else row-major dense.
    const int64_t* indptr = nullptr;
    const int32_t* indices = nullptr;
    // At most one of the two; a CSR matrix with neither has the value 1 everywhere.
    const float* values32 = nullptr;
    const double* values64 = nullptr;

    bool is_sparse() const { return indptr != nullptr; }
    bool is_all_ones() const { return is_sparse() && !values32 && !values64; }

    // Whether row r has feature r alone, with the value 1.
    bool names_rows() const {
        if (!is_all_ones() || n_rows != n_features) return false;
        for (int64_t row = 0; row < n_rows; ++row)
            if (indptr[row] != row || indptr[row + 1] != row + 1 || indices[row] != row) return false;
        return true;
    }

    // Calls visit(feature, value) for every stored entry of a row.
    template <class Visit>
    void for_each(int64_t row, Visit&& visit) const {
        const int64_t begin = is_sparse() ? indptr[row] : row * n_features;
        const int64_t end = is_sparse() ? indptr[row + 1] : begin + n_features;
        if (!is_sparse()) {
            if (values32)
                for (int64_t j = begin; j < end; ++j) visit(j - begin, static_cast<double>(values32[j]));
            else
                for (int64_t j = begin; j < end; ++j) visit(j - begin, values64[j]);
        } else if (values32) {
            for (int64_t j = begin; j < end; ++j) visit(static_cast<int64_t>(indices[j]), static_cast<double>(values32[j]));
        } else if (values64) {
            for (int64_t j = begin; j < end; ++j) visit(static_cast<int64_t>(indices[j]), values64[j]);
        } else {
            for (int64_t j = begin; j < end; ++j) visit(static_cast<int64_t>(indices[j]), 1.0);
        }
    }
};

}  // namespace maxmargin
