// The loops that decide the speed, compiled once per instruction set and chosen when the library is loaded.
#pragma once

#include <cstdint>

#include "qp/box_qp.hpp"
#include "scores/column_sum.hpp"
#include "scores/features.hpp"
#include "scores/kernel_function.hpp"

namespace maxmargin {

// Weights of the rows' block, features × labels with the labels contiguous: W[feature * stride + label].
template <class Scalar>
struct ScoreTask {
    const Features* features;
    const int64_t* rows;  // n_rows row numbers, or null for first_row, first_row + 1, …
    int64_t first_row;
    int64_t n_rows;
    const Scalar* weights;
    int stride;  // 1, or a multiple of label_padding
    Scalar* out;  // n_rows × stride
    int64_t next_row = -1;  // scored soon after these: its weights are fetched meanwhile
};

struct Kernels {
    const char* name;
    void (*score_rows_float)(const ScoreTask<float>&);
    void (*score_rows_double)(const ScoreTask<double>&);
    // out[to] = max_from previous[from] + transition[from * stride + to]
    void (*max_plus_float)(const float* previous, const float* transition, int n_labels, int stride, float* out);
    void (*max_plus_double)(const double* previous, const double* transition, int n_labels, int stride, double* out);
    void (*kernel_values_float)(const KernelTask<float>&);
    void (*kernel_values_double)(const KernelTask<double>&);
    void (*sparse_kernel_values_float)(const SparseKernelTask<float>&);
    void (*sparse_kernel_values_double)(const SparseKernelTask<double>&);
    void (*add_panel_float)(const PanelSum<float>&);
    void (*add_panel_double)(const PanelSum<double>&);
    void (*add_mirrored_float)(const MirroredSum<float>&);
    void (*add_mirrored_double)(const MirroredSum<double>&);
    void (*box_bounds_float)(const BoxTask<float>&);
    void (*box_bounds_double)(const BoxTask<double>&);
    // For tables that are not padded, rows × columns: out[column] = max_row scores[row] + table[row, column]
    void (*max_plus_of_rows)(const double* scores, const double* table, int n_rows, int n_columns, double* out);
    // and the other way round: out[row] = max_column scores[column] + table[row, column]
    void (*max_plus_in_rows)(const double* scores, const double* table, int n_rows, int n_columns, double* out);
    BoxSteps (*solve_box)(const BoxQp& qp);
    BoxGap (*value_box)(const BoxRows& rows);
    void (*add_columns_float)(const ColumnSum<float, float>&);
    void (*add_columns_mixed)(const ColumnSum<float, double>&);
    void (*add_columns_double)(const ColumnSum<double, double>&);
};

const Kernels& kernels();

// Padded rows of more would leave int.
constexpr int most_labels = 1 << 30;

// One score row is a whole number of vectors; a single label is not padded at all.
constexpr int padded_labels(int n_labels) { return n_labels == 1 ? 1 : n_labels <= 4 ? 4 : (n_labels + 7) / 8 * 8; }

inline void score_rows(const ScoreTask<float>& task) { kernels().score_rows_float(task); }
inline void score_rows(const ScoreTask<double>& task) { kernels().score_rows_double(task); }
inline void max_plus(const float* previous, const float* transition, int n_labels, int stride, float* out) {
    kernels().max_plus_float(previous, transition, n_labels, stride, out);
}
inline void max_plus(const double* previous, const double* transition, int n_labels, int stride, double* out) {
    kernels().max_plus_double(previous, transition, n_labels, stride, out);
}
inline void max_plus_of_rows(const double* scores, const double* table, int n_rows, int n_columns, double* out) {
    kernels().max_plus_of_rows(scores, table, n_rows, n_columns, out);
}
inline void max_plus_in_rows(const double* scores, const double* table, int n_rows, int n_columns, double* out) {
    kernels().max_plus_in_rows(scores, table, n_rows, n_columns, out);
}

inline BoxSteps solve_box(const BoxQp& qp) { return kernels().solve_box(qp); }
inline BoxGap value_box(const BoxRows& rows) { return kernels().value_box(rows); }
inline void add_columns(const ColumnSum<float, float>& task) { kernels().add_columns_float(task); }
inline void add_columns(const ColumnSum<float, double>& task) { kernels().add_columns_mixed(task); }
inline void add_columns(const ColumnSum<double, double>& task) { kernels().add_columns_double(task); }

inline void kernel_values(const KernelTask<float>& task) { kernels().kernel_values_float(task); }
inline void kernel_values(const KernelTask<double>& task) { kernels().kernel_values_double(task); }
inline void kernel_values(const SparseKernelTask<float>& task) { kernels().sparse_kernel_values_float(task); }
inline void kernel_values(const SparseKernelTask<double>& task) { kernels().sparse_kernel_values_double(task); }
inline void add_panel(const PanelSum<float>& task) { kernels().add_panel_float(task); }
inline void add_panel(const PanelSum<double>& task) { kernels().add_panel_double(task); }
inline void add_panel(const MirroredSum<float>& task) { kernels().add_mirrored_float(task); }
inline void add_panel(const MirroredSum<double>& task) { kernels().add_mirrored_double(task); }
inline void box_bounds(const BoxTask<float>& task) { kernels().box_bounds_float(task); }
inline void box_bounds(const BoxTask<double>& task) { kernels().box_bounds_double(task); }

}  // namespace maxmargin
