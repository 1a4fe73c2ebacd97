#include "scores/kernel_product.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "scores/kernels.hpp"

namespace maxmargin {

namespace {
// Points that meet all rows before the next ones are laid out: a multiple of every tile.
constexpr size_t block_points = 240, block_bytes = size_t{64} << 20;
constexpr int64_t chunk_panels = 32, chunk_rows = chunk_panels * panel_rows;
// Where the terms of two points are both beyond this, rounding would leave too few digits of their distance.
template <class Scalar>
constexpr Scalar far_term = sizeof(Scalar) == sizeof(float) ? Scalar(1024) : Scalar(1e6);

// sums[r] += Σ_k a_k values[k][r]
template <class Scalar>
void add_panels(const std::vector<Scalar>& a, const Scalar* values, Scalar* sums) {
    Scalar total[panel_rows] = {};
    for (const Scalar coefficient : a) {
        for (int r = 0; r < panel_rows; ++r) total[r] += coefficient * values[r];
        values += panel_rows;
    }
    for (int r = 0; r < panel_rows; ++r) sums[r] += total[r];
}

// sums[k][r] += a_r values[k][r]
template <class Scalar>
void add_mirrored(const Scalar* a, const Scalar* values, std::vector<Scalar>& sums) {
    for (size_t k = 0; k < sums.size(); k += panel_rows)
        for (int r = 0; r < panel_rows; ++r) sums[k + r] += a[r] * values[k + r];
}
}  // namespace

// Sparse points are laid out densely: few at a time where there are many features.
template <class Scalar>
size_t KernelProduct<Scalar>::block_size() const {
    const auto point_bytes = static_cast<size_t>(points_->n_features()) * sizeof(Scalar);
    return std::clamp<size_t>(block_bytes / std::max<size_t>(point_bytes, 1) / panel_rows * panel_rows, panel_rows, block_points);
}

template <class Scalar>
typename KernelProduct<Scalar>::Tiles KernelProduct<Scalar>::tiles_of(std::span<const int64_t> ids) const {
    Tiles tiles{ids, {}, {}, 0};
    points_->write_tiles(ids, points_->is_sparse() ? panel_rows : tile_points<Scalar>, tiles.values, tiles.terms);
    for (const Scalar term : tiles.terms) tiles.largest_term = std::max(tiles.largest_term, -term);
    return tiles;
}

template <class Scalar>
void KernelProduct<Scalar>::panel_values(int64_t panel, const Tiles& tiles, Scalar* values) const {
    const Scalar* row_terms = rows_->terms() + panel * panel_rows;
    if (rows_->is_sparse()) {
        sparse_panel_values(panel, tiles, values);
    } else {
        const int64_t n_tiles = static_cast<int64_t>(tiles.terms.size()) / tile_points<Scalar>;
        const bool has_parts = !parts_.codes.empty();
        if (has_parts) look_up_parts(panel, tiles, values);
        kernel_values(KernelTask<Scalar>{function_, rows_->panel(panel), row_terms, tiles.values.data(), tiles.terms.data(), rows_->n_features(), n_tiles,
                                         values, has_parts});
        if (tiles.largest_term > far_term<Scalar> && *std::min_element(row_terms, row_terms + panel_rows) < -far_term<Scalar>)
            far_values(panel, tiles, values);
    }
}

template <class Scalar>
void KernelProduct<Scalar>::look_up_parts(int64_t panel, const Tiles& tiles, Scalar* values) const {
    const int32_t* codes = parts_.codes.data() + panel * panel_rows;
    for (size_t k = 0; k < tiles.ids.size(); ++k) {
        const Scalar* exponents = parts_.exponents.data() + parts_.codes[tiles.ids[k]] * parts_.n_codes;
        for (int r = 0; r < panel_rows; ++r) values[k * panel_rows + r] = exponents[codes[r]];
    }
    std::fill(values + tiles.ids.size() * panel_rows, values + tiles.terms.size() * panel_rows, Scalar{0});
}

template <class Scalar>
void KernelProduct<Scalar>::sparse_panel_values(int64_t panel, const Tiles& tiles, Scalar* values) const {
    Scalar found[panel_rows];
    const int64_t first = panel * panel_rows, n_rows = std::min<int64_t>(panel_rows, rows_->size() - first);
    const size_t n_points = tiles.terms.size(), tile_length = static_cast<size_t>(panel_rows) * static_cast<size_t>(points_->n_features());
    std::fill_n(values, n_points * panel_rows, Scalar{0});
    for (size_t k = 0; k < n_points; k += panel_rows)
        for (int64_t r = 0; r < n_rows; ++r) {
            const auto row = rows_->sparse_row(first + r);
            kernel_values(SparseKernelTask<Scalar>{function_, row.indices, row.entries, row.length, rows_->terms()[first + r],
                                                   tiles.values.data() + k / panel_rows * tile_length, tiles.terms.data() + k, found});
            for (int p = 0; p < panel_rows; ++p) values[(k + p) * panel_rows + r] = found[p];
        }
}

// The RBF kernel of points far from the centre, by the differences of their features.
template <class Scalar>
void KernelProduct<Scalar>::far_values(int64_t panel, const Tiles& tiles, Scalar* values) const {
    const Scalar* row_terms = rows_->terms() + panel * panel_rows;
    const int64_t d = rows_->n_features();
    for (size_t k = 0; k < tiles.ids.size(); ++k) {
        if (-tiles.terms[k] < far_term<Scalar>) continue;
        const Scalar* point = tiles.values.data() + k / tile_points<Scalar> * tile_points<Scalar> * d + k % tile_points<Scalar>;
        for (int r = 0; r < panel_rows; ++r) {
            if (-row_terms[r] < far_term<Scalar>) continue;
            const Scalar* row = rows_->panel(panel) + r;
            constexpr double least = sizeof(Scalar) == sizeof(float) ? -115.0 : -1000.0;
            double exponent = parts_.codes.empty() ? 0.0 : static_cast<double>(parts_.exponents[parts_.codes[tiles.ids[k]] * parts_.n_codes + parts_.codes[panel * panel_rows + r]]);
            // Most pairs are so far apart that few features tell.
            for (int64_t f = 0; f < d && exponent > least; ++f) {
                const double difference = static_cast<double>(row[f * panel_rows]) - static_cast<double>(point[f * tile_points<Scalar>]);
                exponent -= 0.5 * difference * difference;
            }
            values[k * panel_rows + r] = static_cast<Scalar>(std::exp2(std::max(exponent, least)));
        }
    }
}

template <class Scalar>
void KernelProduct<Scalar>::add(const PointCoefficients& coefficients, int stride, double* out, const Workers& workers) {
    cache_.begin();
    if (is_first_whole(coefficients, stride)) return add_whole(coefficients.values, out, workers);
    for (size_t first = 0; first < coefficients.points.size(); first += block_size())
        add_block(coefficients, first, std::min(first + block_size(), coefficients.points.size()), stride, out, workers);
}

template <class Scalar>
bool KernelProduct<Scalar>::is_first_whole(const PointCoefficients& coefficients, int stride) const {
    if (n_computed_ > 0 || rows_ != points_ || stride > 1 || static_cast<int64_t>(coefficients.points.size()) != n_rows()) return false;
    const auto two_apart = [](int64_t one, int64_t next) { return next - one != 1; };
    return std::adjacent_find(coefficients.starts.begin(), coefficients.starts.end(), two_apart) == coefficients.starts.end();
}

template <class Scalar>
void KernelProduct<Scalar>::add_whole(std::span<const double> a, double* out, const Workers& workers) {
    const int64_t n = n_rows(), step = static_cast<int64_t>(block_size());
    std::vector<int64_t> ids(n);
    std::iota(ids.begin(), ids.end(), int64_t{0});
    for (const int64_t point : ids) cache_.make(point);  // its first time: there is nothing to keep
    std::vector<Scalar> padded(static_cast<size_t>((n + panel_rows - 1) / panel_rows * panel_rows), Scalar{0});
    std::copy(a.begin(), a.end(), padded.begin());
    struct Memory {
        std::vector<Scalar> values, sums, mirrored;
    };
    std::vector<Memory> memories(std::max(workers.n_threads, 1));
    // Rows above a block have met its points already; those below it give their own share to the points.
    for (int64_t first = 0; first < n; first += step) {
        const int64_t end = std::min(first + step, n), n_chunks = (n - first + chunk_rows - 1) / chunk_rows;
        const Tiles tiles = tiles_of(std::span(ids).subspan(first, end - first));
        const std::vector<Scalar> own(padded.begin() + first, padded.begin() + end);
        const size_t length = tiles.terms.size() * panel_rows;
        std::vector<double> shares(static_cast<size_t>(n_chunks * (end - first)), 0.0);
        for_each_chunk(n_chunks, workers, [&](int64_t chunk, int thread) {
            Memory& memory = memories[thread];
            memory.values.resize(length);
            memory.sums.assign(chunk_rows, Scalar{0});
            memory.mirrored.assign(own.size() * panel_rows, Scalar{0});
            const int64_t begin = first + chunk * chunk_rows, stop = std::min(begin + chunk_rows, n);
            for (int64_t row = begin; row < stop; row += panel_rows) {
                panel_values(row / panel_rows, tiles, memory.values.data());
                add_panels(own, memory.values.data(), memory.sums.data() + (row - begin));
                if (row >= end) add_mirrored(padded.data() + row, memory.values.data(), memory.mirrored);
            }
            for (int64_t row = begin; row < stop; ++row) out[row] += static_cast<double>(memory.sums[row - begin]);
            for (size_t k = 0; k < own.size(); ++k) {
                const Scalar* lanes = memory.mirrored.data() + k * panel_rows;
                shares[chunk * own.size() + k] = std::accumulate(lanes, lanes + panel_rows, 0.0);
            }
            heartbeat();
        });
        // In the order of the chunks, whichever thread had them.
        for (int64_t chunk = 0; chunk < n_chunks; ++chunk)
            for (size_t k = 0; k < own.size(); ++k) out[first + static_cast<int64_t>(k)] += shares[chunk * own.size() + k];
        n_computed_ += (end - first) * (n - first);
    }
}

template <class Scalar>
void KernelProduct<Scalar>::add_block(const PointCoefficients& coefficients, size_t first, size_t end, int stride, double* out, const Workers& workers) {
    struct Kept {
        size_t number;
        const Scalar* column;
    };
    struct Made {
        size_t number;
        Scalar* column;  // null: not kept
    };
    std::vector<Kept> kept;
    std::vector<Made> made;
    std::vector<int64_t> ids;
    ids.reserve(end - first);
    made.reserve(end - first);
    Unfilled unfilled{cache_, ids};
    for (size_t k = first; k < end; ++k) {
        const int64_t point = coefficients.points[k];
        if (const Scalar* column = cache_.find(point)) {
            kept.push_back({k, column});
        } else {
            ids.push_back(point);
            made.push_back({k, cache_.make(point)});
        }
    }
    // Where there is one label, its coefficients of the points in their order.
    std::vector<Scalar> single;
    for (const Made& point : made) {
        const auto mine = coefficients.values.subspan(coefficients.starts[point.number], coefficients.starts[point.number + 1] - coefficients.starts[point.number]);
        single.push_back(static_cast<Scalar>(std::accumulate(mine.begin(), mine.end(), 0.0)));
    }
    const bool keeps = std::any_of(made.begin(), made.end(), [](const Made& point) { return point.column != nullptr; });
    const Tiles tiles = tiles_of(ids);
    const int64_t n = n_rows();
    struct Memory {
        std::vector<Scalar> sums, values;
    };
    std::vector<Memory> memories(std::max(workers.n_threads, 1));
    const auto add_column = [&](size_t number, const Scalar* column, int64_t length, Scalar* sums) {
        for (int64_t e = coefficients.starts[number]; e < coefficients.starts[number + 1]; ++e) {
            Scalar* sum = sums + coefficients.labels[e] * chunk_rows;
            const auto a = static_cast<Scalar>(coefficients.values[e]);
            for (int64_t r = 0; r < length; ++r) sum[r] += a * column[r];
        }
    };
    const auto add_chunk = [&](int64_t chunk, int thread) {
        const int64_t begin = chunk * chunk_rows, length = std::min(chunk_rows, n - begin);
        std::vector<Scalar>& sums = memories[thread].sums;
        sums.assign(static_cast<size_t>(stride) * chunk_rows, Scalar{0});
        for (const Kept& point : kept) add_column(point.number, point.column + begin, length, sums.data());
        // The values of all panels, where some columns are kept: these are written a stretch at a time, not panel by panel.
        std::vector<Scalar>& values = memories[thread].values;
        const int64_t panel_length = static_cast<int64_t>(tiles.terms.size()) * panel_rows;
        values.resize(panel_length * (keeps ? chunk_panels : 1));
        for (int64_t r = 0; r < length && !made.empty(); r += panel_rows) {
            Scalar* here = values.data() + (keeps ? r / panel_rows * panel_length : 0);
            panel_values((begin + r) / panel_rows, tiles, here);
            if (stride == 1) add_panels(single, here, sums.data() + r);
            for (size_t k = 0; stride > 1 && k < made.size(); ++k) add_column(made[k].number, here + k * panel_rows, panel_rows, sums.data() + r);
        }
        for (size_t k = 0; keeps && k < made.size(); ++k)
            for (int64_t r = 0; made[k].column && r < length; r += panel_rows)
                std::copy_n(values.data() + r / panel_rows * panel_length + k * panel_rows, std::min<int64_t>(panel_rows, length - r),
                            made[k].column + begin + r);
        for (int64_t r = 0; r < length; ++r)
            for (int label = 0; label < stride; ++label)
                out[(begin + r) * stride + label] += static_cast<double>(sums[static_cast<size_t>(label) * chunk_rows + r]);
        heartbeat();
    };
    for_each_chunk((n + chunk_rows - 1) / chunk_rows, workers, add_chunk);
    unfilled.is_done = true;
    n_computed_ += static_cast<int64_t>(made.size()) * n;
}

template <class Scalar>
std::vector<const Scalar*> KernelProduct<Scalar>::columns(std::span<const int64_t> points, const Workers& workers) {
    cache_.begin();
    std::vector<const Scalar*> found;
    std::vector<int64_t> made;
    std::vector<Scalar*> places;
    made.reserve(points.size());
    places.reserve(points.size());
    Unfilled unfilled{cache_, made};
    for (const int64_t point : points) {
        found.push_back(cache_.find(point));
        if (found.back()) continue;
        made.push_back(point);
        places.push_back(cache_.make(point, true));
    }
    const auto n_homeless = static_cast<size_t>(std::count(places.begin(), places.end(), nullptr));
    spare_.resize(std::max(spare_.size(), n_homeless * static_cast<size_t>(n_rows())));
    Scalar* spare = spare_.data();
    for (Scalar*& place : places)
        if (!place) {
            place = spare;
            spare += n_rows();
        }
    for (size_t first = 0; first < made.size(); first += block_size()) {
        const size_t n = std::min(block_size(), made.size() - first);
        fill_columns(std::span(made).subspan(first, n), std::span(places).subspan(first, n), workers);
    }
    unfilled.is_done = true;
    size_t k = 0;
    for (const Scalar*& column : found)
        if (!column) column = places[k++];
    return found;
}

template <class Scalar>
void KernelProduct<Scalar>::fill_columns(std::span<const int64_t> points, std::span<Scalar* const> columns, const Workers& workers) {
    const Tiles tiles = tiles_of(points);
    const int64_t n = n_rows(), panel_length = static_cast<int64_t>(tiles.terms.size()) * panel_rows;
    std::vector<std::vector<Scalar>> memories(std::max(workers.n_threads, 1));
    for_each_chunk((n + chunk_rows - 1) / chunk_rows, workers, [&](int64_t chunk, int thread) {
        const int64_t begin = chunk * chunk_rows, length = std::min(chunk_rows, n - begin);
        std::vector<Scalar>& values = memories[thread];
        values.resize(panel_length * chunk_panels);
        for (int64_t r = 0; r < length; r += panel_rows) panel_values((begin + r) / panel_rows, tiles, values.data() + r / panel_rows * panel_length);
        for (size_t k = 0; k < points.size(); ++k)
            for (int64_t r = 0; r < length; r += panel_rows)
                std::copy_n(values.data() + r / panel_rows * panel_length + k * panel_rows, std::min<int64_t>(panel_rows, length - r), columns[k] + begin + r);
    });
    n_computed_ += static_cast<int64_t>(points.size()) * n;
}

template <class Scalar>
void KernelProduct<Scalar>::matrix(std::span<const int64_t> points, int64_t first, int64_t end, Scalar* out, const Workers& workers) {
    const size_t width = points.size();
    std::vector<std::vector<Scalar>> memories(std::max(workers.n_threads, 1));
    for (size_t begin = 0; begin < width; begin += block_size()) {
        const Tiles tiles = tiles_of(points.subspan(begin, std::min(block_size(), width - begin)));
        const int64_t first_panel = first / panel_rows, end_panel = (end + panel_rows - 1) / panel_rows;
        for_each_chunk(end_panel - first_panel, workers, [&](int64_t chunk, int thread) {
            const int64_t panel = first_panel + chunk;
            memories[thread].resize(tiles.terms.size() * panel_rows);
            panel_values(panel, tiles, memories[thread].data());
            for (int64_t row = std::max(panel * panel_rows, first); row < std::min((panel + 1) * panel_rows, end); ++row)
                for (size_t k = 0; k < tiles.ids.size(); ++k)
                    out[static_cast<size_t>(row - first) * width + begin + k] = memories[thread][k * panel_rows + row % panel_rows];
        });
    }
    n_computed_ += static_cast<int64_t>(width) * (end - first);
}

template class KernelProduct<float>;
template class KernelProduct<double>;

}  // namespace maxmargin
