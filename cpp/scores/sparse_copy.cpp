#include "scores/sparse_copy.hpp"

#include <algorithm>
#include <type_traits>

namespace maxmargin {

namespace {
// A stored value costs its index too, and its weight is not at the next address.
constexpr double pays_below = 0.4;
constexpr int64_t sampled_rows = 1000;

template <class Value>
int64_t count(const Value* values, int64_t n) {
    return n - std::count(values, values + n, Value{0});
}

template <class Value>
void copy_rows(const Value* values, const Features& dense, std::span<const int32_t> order, std::vector<int64_t>& indptr, std::vector<int32_t>& indices, std::vector<Value>& kept) {
    const int64_t d = dense.n_features, total = count(values, dense.n_rows * d);
    indptr.reserve(dense.n_rows + 1);
    indices.reserve(total);
    kept.reserve(total);
    indptr.push_back(0);
    for (const int64_t row : order) {
        for (int64_t f = 0; f < d; ++f) {
            const Value value = values[row * d + f];
            if (value == Value{0}) continue;
            indices.push_back(static_cast<int32_t>(f));
            kept.push_back(value);
        }
        indptr.push_back(static_cast<int64_t>(indices.size()));
    }
}
}  // namespace

bool SparseCopy::pays(const Features& dense) {
    if (dense.is_sparse() || dense.n_rows == 0) return false;
    const int64_t step = std::max<int64_t>(1, dense.n_rows / sampled_rows), d = dense.n_features;
    int64_t n = 0, n_kept = 0;
    for (int64_t row = 0; row < dense.n_rows; row += step, n += d)
        n_kept += dense.values32 ? count(dense.values32 + row * d, d) : count(dense.values64 + row * d, d);
    return static_cast<double>(n_kept) < pays_below * static_cast<double>(n);
}

SparseCopy::SparseCopy(const Features& dense, std::span<const int32_t> order) : n_features_(dense.n_features) {
    if (dense.values32) copy_rows(dense.values32, dense, order, indptr_, indices_, values32_);
    else copy_rows(dense.values64, dense, order, indptr_, indices_, values64_);
}

Features SparseCopy::view() const {
    Features view;
    view.n_rows = static_cast<int64_t>(indptr_.size()) - 1;
    view.n_features = n_features_;
    view.indptr = indptr_.data();
    view.indices = indices_.data();
    // A matrix of zeros has no values: it must not be taken for one of ones, which it equals all the same.
    view.values32 = values32_.empty() ? nullptr : values32_.data();
    view.values64 = values64_.empty() ? nullptr : values64_.data();
    return view;
}

}  // namespace maxmargin
