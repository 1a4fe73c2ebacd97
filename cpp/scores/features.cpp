#include "scores/features.hpp"

namespace maxmargin {

double Features::inner(int64_t a, int64_t b) const {
    double sum = 0.0;
    const auto value = [this](int64_t j) { return values32 ? static_cast<double>(values32[j]) : values64 ? values64[j] : 1.0; };
    if (!is_sparse()) {
        for (int64_t f = 0; f < n_features; ++f) sum += value(a * n_features + f) * value(b * n_features + f);
        return sum;
    }
    int64_t i = indptr[a], j = indptr[b];
    while (i < indptr[a + 1] && j < indptr[b + 1]) {
        if (indices[i] < indices[j]) {
            ++i;
        } else if (indices[j] < indices[i]) {
            ++j;
        } else {
            sum += value(i++) * value(j++);
        }
    }
    return sum;
}

}  // namespace maxmargin
