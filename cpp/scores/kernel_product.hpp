// Products with a kernel matrix that is never stored: out += K(rows, points) · coefficients, block by block.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "memory/large_pages.hpp"
#include "scores/column_cache.hpp"
#include "scores/kernel_points.hpp"
#include "scores/near_tiles.hpp"
#include "threads/parallel.hpp"

namespace maxmargin {

// Coefficients of some points: point k has those of entries starts[k] … starts[k + 1] − 1.
struct PointCoefficients {
    std::span<const int64_t> points;
    std::span<const int64_t> starts;
    std::span<const int32_t> labels;
    std::span<const double> values;
};

template <class Scalar>
class KernelProduct {
  public:
    using Points = KernelPoints<Scalar>;
    // Rows and points are laid out for the same function, and either both are sparse or none is.
    // Parts are given only where the points are the rows. Values of the RBF kernel of dense rows that are below ``negligible`` may be
    // taken for 0: few are computed where neighbouring rows are alike. No columns are kept then: to write them down and to read
    // them takes as long as to compute them.
    KernelProduct(std::shared_ptr<const Points> rows, std::shared_ptr<const Points> points, KernelFunction function, double cache_bytes,
                  RepeatedParts<Scalar> parts = {}, double negligible = 0.0);

    int64_t n_rows() const { return rows_->size(); }
    int64_t n_points() const { return points_->size(); }
    // Kernel values computed so far.
    int64_t n_computed() const { return n_computed_; }

    // Whether some values are left out because they are negligible.
    bool leaves_out() const { return panels_.n_boxes > 0; }

    // out[row * stride + label] += Σ_k K(row, point k) · coefficient of k for the label. Sums of some hundred points are formed in
    // Scalar, and added up in double.
    void add(const PointCoefficients& coefficients, int stride, double* out, const Workers& workers);
    // The columns of different points, for all rows; they stay until the next call.
    std::vector<const Scalar*> columns(std::span<const int64_t> points, const Workers& workers);
    // The column of a point if it was kept, else null; it stays until columns are asked for.
    const Scalar* kept_column(int64_t point) { return cache_.find(point); }
    // out[row − first][k] = K(row, point k), for rows first … end − 1.
    void matrix(std::span<const int64_t> points, int64_t first, int64_t end, Scalar* out, const Workers& workers);

  private:
    struct Tiles {
        std::span<const int64_t> ids;
        std::vector<Scalar> values, terms;
        int64_t width = 1;  // points of a tile
        Scalar largest_term = 0;
        std::vector<int32_t> codes;  // of the points, where rows have parts
        Boxes<Scalar> boxes;         // where some tiles may be left out
    };
    // What a thread works with.
    struct Memory {
        std::vector<Scalar, LargePages<Scalar>> values, mirrored;
        std::vector<Scalar> sums, terms;
        std::vector<double> totals;
        NearTiles<Scalar> near;
        std::vector<TileRun> runs;  // of the panel met last
        int64_t n_values = 0;
    };
    // Columns that were made in the cache are given up unless they were all filled.
    struct Unfilled {
        ColumnCache<Scalar>& cache;
        const std::vector<int64_t>& points;
        bool is_done = false;
        ~Unfilled() {
            for (size_t k = 0; !is_done && k < points.size(); ++k) cache.forget(points[k]);
        }
    };
    size_t block_size() const;
    Tiles tiles_of(std::span<const int64_t> ids) const;
    // values[k * panel_rows + r] = K(row r of the panel, point k), for the points of the tiles in memory.runs; the others are too far
    // away, and have 0 where it is asked for.
    void panel_values(int64_t panel, const Tiles& tiles, bool writes_zeros, Memory& memory, Scalar* values) const;
    void dense_panel_values(int64_t panel, const Tiles& tiles, Memory& memory, Scalar* values) const;
    void sparse_panel_values(int64_t panel, const Tiles& tiles, Scalar* values) const;
    void look_up_parts(int64_t panel, const Tiles& tiles, const std::vector<TileRun>& runs, Scalar* values) const;
    void far_values(int64_t panel, const Tiles& tiles, TileRun run, Scalar* values) const;
    void far_sparse_values(int64_t panel, const Tiles& tiles, Scalar* values) const;
    std::vector<Memory> memories(const Workers& workers) const { return std::vector<Memory>(std::max(workers.n_threads, 1)); }
    void count(const std::vector<Memory>& memories);
    void fill_columns(std::span<const int64_t> points, std::span<Scalar* const> columns, const Workers& workers);
    // Whether coefficients are those of most rows, one for each, and no column is kept.
    bool is_nearly_whole(const PointCoefficients& coefficients, int stride) const;
    // out += K a, where the points are the rows: a value of two rows serves both of them.
    void add_whole(const PointCoefficients& coefficients, double* out, const Workers& workers);
    void add_block(const PointCoefficients& coefficients, size_t first, size_t end, int stride, double* out, const Workers& workers);

    std::shared_ptr<const Points> rows_, points_;
    KernelFunction function_;
    ColumnCache<Scalar> cache_;
    RepeatedParts<Scalar> parts_;
    Boxes<Scalar> panels_;  // none where all tiles are met
    double least_exponent_;
    std::vector<Scalar> spare_;  // columns that the cache has no room for
    int64_t n_computed_ = 0;
};

}  // namespace maxmargin
