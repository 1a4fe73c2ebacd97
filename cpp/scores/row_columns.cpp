#include "scores/row_columns.hpp"

#include <algorithm>

#include "scores/column_sum.hpp"
#include "scores/kernels.hpp"

namespace maxmargin {

namespace {
// Scores of so many rows are moved at a time, all labels; sums of one label lie so far from those of the next that they do not share
// a place in a core's memory.
constexpr int64_t chunk_rows = 512, chunk_room = chunk_rows + 16;
}  // namespace

template <class Scalar, class Sum>
void TypedColumns<Scalar, Sum>::prepare(std::span<const int64_t> rows, std::vector<double>& among) {
    prepare(rows);
    const size_t n = rows.size();
    among.resize(n * n);
    for (size_t p = 0; p < n; ++p)
        for (size_t q = 0; q < n; ++q) among[p * n + q] = p == q ? diagonal_[rows[p]] : static_cast<double>(columns_[p][rows[q]]) + constant_;
}

template <class Scalar, class Sum>
void TypedColumns<Scalar, Sum>::values(int64_t row, std::span<const int64_t> rows, double* out) {
    const Scalar* column = column_at_hand(row);
    if (!column) write_values(row, rows, values_);
    for (size_t k = 0; k < rows.size(); ++k)
        out[k] = rows[k] == row ? diagonal_[row] : static_cast<double>(column ? column[rows[k]] : values_[k]) + constant_;
}

template <class Scalar, class Sum>
auto TypedColumns<Scalar, Sum>::by_label(const std::vector<double>& change, int stride) const -> std::vector<Moved> {
    std::vector<Moved> all;
    for (int label = 0; label < stride; ++label) {
        Moved moved{label, {}, {}};
        for (size_t p = 0; p < columns_.size(); ++p) {
            const double factor = change[p * static_cast<size_t>(stride) + label];
            if (factor == 0.0) continue;
            moved.columns.push_back(columns_[p]);
            moved.factors.push_back(factor);
            moved.total += factor;
        }
        if (!moved.columns.empty()) all.push_back(std::move(moved));
    }
    return all;
}

// Sums are made label by label, and added row by row: scores take more memory than a core has near.
template <class Scalar, class Sum>
void TypedColumns<Scalar, Sum>::add(const std::vector<double>& change, int stride, double* scores) const {
    const int64_t n = static_cast<int64_t>(diagonal_.size());
    const std::vector<Moved> all = by_label(change, stride);
    std::vector<std::vector<Sum>> memories(std::max(workers_.n_threads, 1));
    // To its end: scores of some rows only would no longer be those of any α.
    for_each_chunk((n + chunk_rows - 1) / chunk_rows, {workers_.n_threads, {}}, [&](int64_t chunk, int thread) {
        const int64_t first = chunk * chunk_rows, length = std::min(chunk_rows, n - first);
        std::vector<Sum>& sums = memories[thread];
        sums.assign(all.size() * chunk_room, Sum{0});
        for (size_t k = 0; k < all.size(); ++k) {
            const Moved& moved = all[k];
            add_columns(ColumnSum<Scalar, Sum>{moved.columns.data(), moved.factors.data(), static_cast<int64_t>(moved.columns.size()), first, length,
                                               sums.data() + k * chunk_room});
        }
        for (int64_t r = 0; r < length; ++r) {
            double* const of_row = scores + (first + r) * stride;
            const Sum* const sum = sums.data() + r;
            for (size_t k = 0; k < all.size(); ++k) of_row[all[k].label] += static_cast<double>(sum[k * chunk_room]) + all[k].total * constant_;
        }
    });
}

template class TypedColumns<float, float>;
template class TypedColumns<double, double>;
template class TypedColumns<float, double>;

}  // namespace maxmargin
