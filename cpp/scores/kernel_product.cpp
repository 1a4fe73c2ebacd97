#include "scores/kernel_product.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "scores/kernels.hpp"

namespace maxmargin {

namespace {
// Points that meet all rows before the next ones are laid out: a multiple of every tile.
constexpr size_t block_points = 480, block_bytes = size_t{64} << 20;
constexpr int64_t chunk_panels = 32, chunk_rows = chunk_panels * panel_rows;
// Boxes are looked at where they spare more than this share of the values.
constexpr double worth_leaving_out = 0.1;
// Where the terms of two points are both beyond this, rounding would leave too few digits of their distance.
template <class Scalar>
constexpr Scalar far_term = sizeof(Scalar) == sizeof(float) ? Scalar(1024) : Scalar(1e6);
// Powers of 2 below this are 0 as far as anyone can tell.
template <class Scalar>
constexpr double least_power = sizeof(Scalar) == sizeof(float) ? -115.0 : -1000.0;

// −½‖x − z‖² of sparse rows whose features ascend.
template <class Row>
double far_exponent(const Row& x, const Row& z) {
    double sum = 0.0;
    for (int64_t i = 0, j = 0; i < x.length || j < z.length;) {
        const bool takes_x = j == z.length || (i < x.length && x.indices[i] <= z.indices[j]);
        const bool takes_z = i == x.length || (j < z.length && z.indices[j] <= x.indices[i]);
        const double difference = (takes_x ? static_cast<double>(x.entries[i]) : 0.0) - (takes_z ? static_cast<double>(z.entries[j]) : 0.0);
        sum += difference * difference;
        i += takes_x;
        j += takes_z;
    }
    return -0.5 * sum;
}

// Calls use(k) for the points of the tiles.
template <class Use>
void for_each_point(const std::vector<TileRun>& runs, int64_t tile_width, size_t n_points, Use&& use) {
    for (const TileRun& run : runs)
        for (auto k = static_cast<size_t>(run.begin * tile_width); k < std::min(static_cast<size_t>(run.end * tile_width), n_points); ++k) use(k);
}

// sums[r] += Σ_k a_k values[k][r]
template <class Scalar>
void add_panels(const std::vector<TileRun>& runs, int64_t tile_width, const std::vector<Scalar>& a, const Scalar* values, double* sums) {
    for (const TileRun& run : runs) {
        const int64_t first = run.begin * tile_width, n = std::min(run.end * tile_width, static_cast<int64_t>(a.size())) - first;
        add_panel(PanelSum<Scalar>{a.data() + first, values + first * panel_rows, n, sums});
    }
}

// sums[k][r] += a_r values[k][r]
template <class Scalar>
void add_mirrored(const std::vector<TileRun>& runs, int64_t tile_width, const Scalar* a, const Scalar* values, std::vector<Scalar, LargePages<Scalar>>& sums) {
    for (const TileRun& run : runs) {
        const int64_t first = run.begin * tile_width, n = std::min(run.end * tile_width, static_cast<int64_t>(sums.size()) / panel_rows) - first;
        add_panel(MirroredSum<Scalar>{a, values + first * panel_rows, n, sums.data() + first * panel_rows});
    }
}
}  // namespace

template <class Scalar>
KernelProduct<Scalar>::KernelProduct(std::shared_ptr<const Points> rows, std::shared_ptr<const Points> points, KernelFunction function, double cache_bytes,
                                     RepeatedParts<Scalar> parts, double negligible)
    : rows_(std::move(rows)), points_(std::move(points)), function_(function), cache_(rows_->size(), cache_bytes), parts_(std::move(parts)),
      least_exponent_(std::log2(negligible)) {
    if (negligible <= 0.0 || function_.kind != KernelKind::rbf || rows_->is_sparse()) return;
    panels_ = Boxes<Scalar>(rows_->panel(0), panel_rows, rows_->size(), rows_->n_features(), std::span(parts_.codes));
    if (NearTiles<Scalar>().far_share(panels_, parts_, least_exponent_) < worth_leaving_out) panels_ = {};
    else cache_ = {rows_->size(), 0.0};
}

// Sparse points are laid out densely: few at a time where there are many features.
template <class Scalar>
size_t KernelProduct<Scalar>::block_size() const {
    const auto point_bytes = static_cast<size_t>(points_->n_features()) * sizeof(Scalar);
    return std::clamp<size_t>(block_bytes / std::max<size_t>(point_bytes, 1) / panel_rows * panel_rows, panel_rows, block_points);
}

template <class Scalar>
typename KernelProduct<Scalar>::Tiles KernelProduct<Scalar>::tiles_of(std::span<const int64_t> ids) const {
    const int width = points_->is_sparse() ? panel_rows : tile_points<Scalar>;
    Tiles tiles{ids, {}, {}, width, 0, {}, {}};
    points_->write_tiles(ids, width, tiles.values, tiles.terms);
    if (!parts_.codes.empty())
        for (const int64_t id : ids) tiles.codes.push_back(parts_.codes[id]);
    if (panels_.n_boxes > 0)
        tiles.boxes = Boxes<Scalar>(tiles.values.data(), width, static_cast<int64_t>(ids.size()), points_->n_features(), std::span(tiles.codes));
    for (const Scalar term : tiles.terms) tiles.largest_term = std::max(tiles.largest_term, -term);
    return tiles;
}

template <class Scalar>
void KernelProduct<Scalar>::panel_values(int64_t panel, const Tiles& tiles, bool writes_zeros, Memory& memory, Scalar* values) const {
    if (panels_.n_boxes > 0) memory.runs = memory.near.find(panels_, panel, tiles.boxes, parts_, least_exponent_);
    else memory.runs.assign(1, {0, static_cast<int64_t>(tiles.terms.size()) / tiles.width});
    const auto n_points = static_cast<int64_t>(tiles.ids.size());
    int64_t n_met = 0;
    for (const TileRun& run : memory.runs) n_met += std::min(run.end * tiles.width, n_points) - run.begin * tiles.width;
    memory.n_values += n_met * std::min<int64_t>(panel_rows, n_rows() - panel * panel_rows);
    if (writes_zeros && n_met < n_points) std::fill_n(values, tiles.terms.size() * panel_rows, Scalar{0});
    if (rows_->is_sparse()) sparse_panel_values(panel, tiles, values);
    else dense_panel_values(panel, tiles, memory, values);
}

template <class Scalar>
void KernelProduct<Scalar>::dense_panel_values(int64_t panel, const Tiles& tiles, Memory& memory, Scalar* values) const {
    const Scalar *row_terms = rows_->terms() + panel * panel_rows, *point_terms = tiles.terms.data();
    const bool has_parts = !parts_.codes.empty();
    const int32_t code = panels_.n_boxes > 0 ? panels_.codes[panel] : -1;
    if (code >= 0) {
        // All rows have the same part: the points' terms take it in.
        memory.terms = tiles.terms;
        for_each_point(memory.runs, tiles.width, tiles.ids.size(), [&](size_t k) { memory.terms[k] += parts_.exponent(code, tiles.codes[k]); });
        point_terms = memory.terms.data();
    } else if (has_parts) {
        look_up_parts(panel, tiles, memory.runs, values);
    }
    const bool is_far = tiles.largest_term > far_term<Scalar> && *std::min_element(row_terms, row_terms + panel_rows) < -far_term<Scalar>;
    for (const TileRun& run : memory.runs) {
        const int64_t first = run.begin * tiles.width;
        kernel_values(KernelTask<Scalar>{function_, rows_->panel(panel), row_terms, tiles.values.data() + first * rows_->n_features(), point_terms + first,
                                         rows_->n_features(), run.end - run.begin, values + first * panel_rows, has_parts && code < 0});
        if (is_far) far_values(panel, tiles, run, values);
    }
}

template <class Scalar>
void KernelProduct<Scalar>::look_up_parts(int64_t panel, const Tiles& tiles, const std::vector<TileRun>& runs, Scalar* values) const {
    const int32_t* codes = parts_.codes.data() + panel * panel_rows;
    for_each_point(runs, tiles.width, tiles.ids.size(), [&](size_t k) {
        const Scalar* exponents = parts_.exponents.data() + tiles.codes[k] * parts_.n_codes;
        for (int r = 0; r < panel_rows; ++r) values[k * panel_rows + r] = exponents[codes[r]];
    });
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
    if (tiles.largest_term > far_term<Scalar>) far_sparse_values(panel, tiles, values);
}

// The RBF kernel of sparse points far from 0, by the differences of their features.
template <class Scalar>
void KernelProduct<Scalar>::far_sparse_values(int64_t panel, const Tiles& tiles, Scalar* values) const {
    const int64_t first = panel * panel_rows, n_rows = std::min<int64_t>(panel_rows, rows_->size() - first);
    for (size_t k = 0; k < tiles.ids.size(); ++k) {
        if (-tiles.terms[k] < far_term<Scalar>) continue;
        const auto point = points_->sparse_row(tiles.ids[k]);
        for (int64_t r = 0; r < n_rows; ++r)
            if (-rows_->terms()[first + r] >= far_term<Scalar>)
                values[k * panel_rows + r] = static_cast<Scalar>(std::exp2(std::max(far_exponent(rows_->sparse_row(first + r), point), least_power<Scalar>)));
    }
}

// The RBF kernel of points far from the centre, by the differences of their features.
template <class Scalar>
void KernelProduct<Scalar>::far_values(int64_t panel, const Tiles& tiles, TileRun run, Scalar* values) const {
    const Scalar* row_terms = rows_->terms() + panel * panel_rows;
    const int64_t d = rows_->n_features();
    for (auto k = static_cast<size_t>(run.begin * tiles.width); k < std::min(static_cast<size_t>(run.end * tiles.width), tiles.ids.size()); ++k) {
        if (-tiles.terms[k] < far_term<Scalar>) continue;
        const Scalar* point = tiles.values.data() + k / tile_points<Scalar> * tile_points<Scalar> * d + k % tile_points<Scalar>;
        for (int r = 0; r < panel_rows; ++r) {
            if (-row_terms[r] < far_term<Scalar>) continue;
            const Scalar* row = rows_->panel(panel) + r;
            double exponent = parts_.codes.empty() ? 0.0 : static_cast<double>(parts_.exponent(tiles.codes[k], parts_.codes[panel * panel_rows + r]));
            // Most pairs are so far apart that few features tell.
            for (int64_t f = 0; f < d && exponent > least_power<Scalar>; ++f) {
                const double difference = static_cast<double>(row[f * panel_rows]) - static_cast<double>(point[f * tile_points<Scalar>]);
                exponent -= 0.5 * difference * difference;
            }
            values[k * panel_rows + r] = static_cast<Scalar>(std::exp2(std::max(exponent, least_power<Scalar>)));
        }
    }
}

template <class Scalar>
void KernelProduct<Scalar>::add(const PointCoefficients& coefficients, int stride, double* out, const Workers& workers) {
    cache_.begin();
    if (is_nearly_whole(coefficients, stride)) return add_whole(coefficients, out, workers);
    for (size_t first = 0; first < coefficients.points.size(); first += block_size())
        add_block(coefficients, first, std::min(first + block_size(), coefficients.points.size()), stride, out, workers);
}

template <class Scalar>
bool KernelProduct<Scalar>::is_nearly_whole(const PointCoefficients& coefficients, int stride) const {
    if ((n_computed_ > 0 && cache_.capacity() > 0) || rows_ != points_ || stride > 1 || static_cast<int64_t>(coefficients.points.size()) <= n_rows() / 2) return false;
    const auto two_apart = [](int64_t one, int64_t next) { return next - one != 1; };
    return std::adjacent_find(coefficients.starts.begin(), coefficients.starts.end(), two_apart) == coefficients.starts.end();
}

template <class Scalar>
void KernelProduct<Scalar>::add_whole(const PointCoefficients& coefficients, double* out, const Workers& workers) {
    const int64_t n = n_rows(), step = static_cast<int64_t>(block_size());
    std::vector<int64_t> ids(n);
    std::iota(ids.begin(), ids.end(), int64_t{0});
    for (const int64_t point : coefficients.points) cache_.make(point);  // its first time: there is nothing to keep
    std::vector<Scalar> padded(static_cast<size_t>((n + panel_rows - 1) / panel_rows * panel_rows), Scalar{0});
    for (size_t k = 0; k < coefficients.points.size(); ++k) padded[coefficients.points[k]] = static_cast<Scalar>(coefficients.values[k]);
    std::vector<Memory> of_threads = memories(workers);
    // Rows above a block have met its points already; those below it give their own share to the points.
    for (int64_t first = 0; first < n; first += step) {
        const int64_t end = std::min(first + step, n), n_chunks = (n - first + chunk_rows - 1) / chunk_rows;
        const Tiles tiles = tiles_of(std::span(ids).subspan(first, end - first));
        const std::vector<Scalar> own(padded.begin() + first, padded.begin() + end);
        const size_t length = tiles.terms.size() * panel_rows;
        std::vector<double> shares(static_cast<size_t>(n_chunks * (end - first)), 0.0);
        for_each_chunk(n_chunks, workers, [&](int64_t chunk, int thread) {
            Memory& memory = of_threads[thread];
            memory.values.resize(length);
            memory.totals.assign(chunk_rows, 0.0);
            memory.mirrored.assign(own.size() * panel_rows, Scalar{0});
            const int64_t begin = first + chunk * chunk_rows, stop = std::min(begin + chunk_rows, n);
            for (int64_t row = begin; row < stop; row += panel_rows) {
                panel_values(row / panel_rows, tiles, false, memory, memory.values.data());
                add_panels(memory.runs, tiles.width, own, memory.values.data(), memory.totals.data() + (row - begin));
                if (row >= end) add_mirrored(memory.runs, tiles.width, padded.data() + row, memory.values.data(), memory.mirrored);
            }
            for (int64_t row = begin; row < stop; ++row) out[row] += memory.totals[row - begin];
            for (size_t k = 0; k < own.size(); ++k) {
                const Scalar* lanes = memory.mirrored.data() + k * panel_rows;
                shares[chunk * own.size() + k] = std::accumulate(lanes, lanes + panel_rows, 0.0);
            }
            heartbeat();
        });
        // In the order of the chunks, whichever thread had them.
        for (int64_t chunk = 0; chunk < n_chunks; ++chunk)
            for (size_t k = 0; k < own.size(); ++k) out[first + static_cast<int64_t>(k)] += shares[chunk * own.size() + k];
    }
    count(of_threads);
}

template <class Scalar>
void KernelProduct<Scalar>::count(const std::vector<Memory>& memories) {
    for (const Memory& memory : memories) n_computed_ += memory.n_values;
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
    std::vector<Memory> of_threads = memories(workers);
    const auto add_column = [&](size_t number, const Scalar* column, int64_t length, Scalar* sums) {
        for (int64_t e = coefficients.starts[number]; e < coefficients.starts[number + 1]; ++e) {
            Scalar* sum = sums + coefficients.labels[e] * chunk_rows;
            const auto a = static_cast<Scalar>(coefficients.values[e]);
            for (int64_t r = 0; r < length; ++r) sum[r] += a * column[r];
        }
    };
    const auto add_chunk = [&](int64_t chunk, int thread) {
        const int64_t begin = chunk * chunk_rows, length = std::min(chunk_rows, n - begin);
        Memory& memory = of_threads[thread];
        std::vector<Scalar>& sums = memory.sums;
        sums.assign(static_cast<size_t>(stride) * chunk_rows, Scalar{0});
        memory.totals.assign(chunk_rows, 0.0);
        for (const Kept& point : kept) add_column(point.number, point.column + begin, length, sums.data());
        // The values of all panels, where some columns are kept: these are written a stretch at a time, not panel by panel.
        auto& values = memory.values;
        const int64_t panel_length = static_cast<int64_t>(tiles.terms.size()) * panel_rows;
        values.resize(panel_length * (keeps ? chunk_panels : 1));
        for (int64_t r = 0; r < length && !made.empty(); r += panel_rows) {
            Scalar* here = values.data() + (keeps ? r / panel_rows * panel_length : 0);
            panel_values((begin + r) / panel_rows, tiles, keeps, memory, here);
            if (stride == 1) add_panels(memory.runs, tiles.width, single, here, memory.totals.data() + r);
            else for_each_point(memory.runs, tiles.width, made.size(), [&](size_t k) { add_column(made[k].number, here + k * panel_rows, panel_rows, sums.data() + r); });
        }
        for (size_t k = 0; keeps && k < made.size(); ++k)
            for (int64_t r = 0; made[k].column && r < length; r += panel_rows)
                std::copy_n(values.data() + r / panel_rows * panel_length + k * panel_rows, std::min<int64_t>(panel_rows, length - r),
                            made[k].column + begin + r);
        for (int64_t r = 0; r < length; ++r)
            for (int label = 0; label < stride; ++label)
                out[(begin + r) * stride + label] += static_cast<double>(sums[static_cast<size_t>(label) * chunk_rows + r]) + (stride == 1 ? memory.totals[r] : 0.0);
        heartbeat();
    };
    for_each_chunk((n + chunk_rows - 1) / chunk_rows, workers, add_chunk);
    unfilled.is_done = true;
    count(of_threads);
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
    std::vector<Memory> of_threads = memories(workers);
    for_each_chunk((n + chunk_rows - 1) / chunk_rows, workers, [&](int64_t chunk, int thread) {
        const int64_t begin = chunk * chunk_rows, length = std::min(chunk_rows, n - begin);
        auto& values = of_threads[thread].values;
        values.resize(panel_length * chunk_panels);
        for (int64_t r = 0; r < length; r += panel_rows) panel_values((begin + r) / panel_rows, tiles, true, of_threads[thread], values.data() + r / panel_rows * panel_length);
        for (size_t k = 0; k < points.size(); ++k)
            for (int64_t r = 0; r < length; r += panel_rows)
                std::copy_n(values.data() + r / panel_rows * panel_length + k * panel_rows, std::min<int64_t>(panel_rows, length - r), columns[k] + begin + r);
    });
    count(of_threads);
}

template <class Scalar>
void KernelProduct<Scalar>::matrix(std::span<const int64_t> points, int64_t first, int64_t end, Scalar* out, const Workers& workers) {
    const size_t width = points.size();
    std::vector<Memory> of_threads = memories(workers);
    for (size_t begin = 0; begin < width; begin += block_size()) {
        const Tiles tiles = tiles_of(points.subspan(begin, std::min(block_size(), width - begin)));
        const int64_t first_panel = first / panel_rows, end_panel = (end + panel_rows - 1) / panel_rows;
        for_each_chunk(end_panel - first_panel, workers, [&](int64_t chunk, int thread) {
            const int64_t panel = first_panel + chunk;
            auto& values = of_threads[thread].values;
            values.resize(tiles.terms.size() * panel_rows);
            panel_values(panel, tiles, true, of_threads[thread], values.data());
            for (int64_t row = std::max(panel * panel_rows, first); row < std::min((panel + 1) * panel_rows, end); ++row)
                for (size_t k = 0; k < tiles.ids.size(); ++k)
                    out[static_cast<size_t>(row - first) * width + begin + k] = values[k * panel_rows + row % panel_rows];
        });
    }
    count(of_threads);
}

template class KernelProduct<float>;
template class KernelProduct<double>;

}  // namespace maxmargin
