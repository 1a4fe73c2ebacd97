#include "scores/kernel_points.hpp"

#include <cmath>

namespace maxmargin {

template <class Scalar>
KernelPoints<Scalar>::KernelPoints(const Features& rows, const KernelFunction& function, const double* centre)
    : n_rows_(rows.n_rows), n_features_(rows.n_features) {
    const bool is_rbf = function.kind == KernelKind::rbf;
    // exp(−γ‖x − z‖²) = 2^(s²x·z − ½s²‖x‖² − ½s²‖z‖²) with s² = 2γ / log 2.
    const double scale = is_rbf ? std::sqrt(2.0 * function.gamma * 1.4426950408889634074) : 1.0;
    const int64_t n_panels = (n_rows_ + panel_rows - 1) / panel_rows;
    terms_.assign(n_panels * panel_rows, Scalar{0});
    if (rows.is_sparse()) {
        indptr_.assign(rows.indptr, rows.indptr + n_rows_ + 1);
        indices_.assign(rows.indices, rows.indices + indptr_.back());
        entries_.reserve(indptr_.back());
    } else {
        panels_.assign(n_panels * panel_rows * n_features_, Scalar{0});
    }
    for (int64_t row = 0; row < n_rows_; ++row) {
        Scalar* place = rows.is_sparse() ? nullptr : panels_.data() + row / panel_rows * panel_rows * n_features_ + row % panel_rows;
        double norm2 = 0.0;
        rows.for_each(row, [&](int64_t f, double x) {
            const auto kept = static_cast<Scalar>(scale * (place && is_rbf && centre ? x - centre[f] : x));
            norm2 += static_cast<double>(kept) * static_cast<double>(kept);
            if (place) place[f * panel_rows] = kept;
            else entries_.push_back(kept);
        });
        if (is_rbf) terms_[row] = static_cast<Scalar>(-0.5 * norm2);
    }
}

template <class Scalar>
template <class Visit>
void KernelPoints<Scalar>::for_each(int64_t row, Visit&& visit) const {
    if (is_sparse()) {
        const SparseRow sparse = sparse_row(row);
        for (int64_t j = 0; j < sparse.length; ++j) visit(static_cast<int64_t>(sparse.indices[j]), sparse.entries[j]);
    } else {
        const Scalar* values = panel(row / panel_rows) + row % panel_rows;
        for (int64_t f = 0; f < n_features_; ++f) visit(f, values[f * panel_rows]);
    }
}

template <class Scalar>
void KernelPoints<Scalar>::write_tiles(std::span<const int64_t> ids, int tile_size, std::vector<Scalar>& tiles, std::vector<Scalar>& terms) const {
    const int64_t n = static_cast<int64_t>(ids.size()), n_tiles = (n + tile_size - 1) / tile_size;
    tiles.assign(n_tiles * tile_size * n_features_, Scalar{0});
    terms.assign(n_tiles * tile_size, Scalar{0});
    for (int64_t k = 0; k < n; ++k) {
        Scalar* tile = tiles.data() + k / tile_size * tile_size * n_features_ + k % tile_size;
        for_each(ids[k], [&](int64_t f, Scalar x) { tile[f * tile_size] = x; });
        terms[k] = terms_[ids[k]];
    }
}

template class KernelPoints<float>;
template class KernelPoints<double>;

}  // namespace maxmargin
