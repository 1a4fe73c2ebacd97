// Compiled once per instruction set with MAXMARGIN_ISA naming it. Nothing here may call an inline function of another file: a
// copy of it compiled for a newer CPU could replace the one that older CPUs run. Hence no standard headers but <cstdint>, and
// the inline functions of kernels.hpp and features.hpp are not used.
#include "scores/kernels.hpp"

#include "scores/isa/box_qp.hpp"
#include "scores/isa/column_sum.hpp"
#include "scores/isa/kernel_values.hpp"
#include "scores/isa/table_messages.hpp"

namespace maxmargin::MAXMARGIN_ISA {

namespace {

#if defined(__GNUC__) || defined(__clang__)
inline void prefetch(const void* at) { __builtin_prefetch(at); }
#else
inline void prefetch(const void*) {}
#endif

// Weights of rare features are not in any near cache: while a row is summed, those of the next row are asked for. Where there is
// none, or the row is longer, the last feature is asked for again: a condition in the loop would cost more.
struct NextRow {
    const int32_t* indices;
    int64_t last;
    int64_t feature(int64_t j) const { return indices[j < last ? j : last]; }
};

template <class Value>
struct CsrRow {
    const int32_t* indices;
    const Value* values;
    int64_t length;
    NextRow next;
    int64_t feature(int64_t j) const { return indices[j]; }
    Value value(int64_t j) const { return values[j]; }
};

struct OnesRow {
    const int32_t* indices;
    int64_t length;
    NextRow next;
    int64_t feature(int64_t j) const { return indices[j]; }
    float value(int64_t) const { return 1.0f; }
};

template <class Value>
struct DenseRow {
    const Value* values;
    int64_t length;
    int64_t feature(int64_t j) const { return j; }
    Value value(int64_t j) const { return values[j]; }
};

// Sums rows of W into Width accumulators that the compiler keeps in registers.
template <int Width, class Scalar, class Row>
inline void sum_tile(const Row& row, const Scalar* weights, int stride, Scalar* out) {
    Scalar sum[Width] = {};
    for (int64_t j = 0; j < row.length; ++j) {
        const Scalar x = static_cast<Scalar>(row.value(j));
        const Scalar* w = weights + row.feature(j) * stride;
        if constexpr (requires { row.next; }) {
            const char* at = reinterpret_cast<const char*>(weights + row.next.feature(j) * stride);
            for (int line = 0; line < static_cast<int>(Width * sizeof(Scalar)); line += 64) prefetch(at + line);
        }
        for (int k = 0; k < Width; ++k) sum[k] += x * w[k];
    }
    for (int k = 0; k < Width; ++k) out[k] = sum[k];
}

// Four dense rows at once: one accumulator chain per row hides the latency of the additions.
template <int Width, class Scalar, class Value>
inline void sum_tile_of_four(const Value* const (&x)[4], int64_t n_features, const Scalar* weights, int stride, Scalar* const (&out)[4]) {
    Scalar sum[4][Width] = {};
    for (int64_t f = 0; f < n_features; ++f) {
        const Scalar* w = weights + f * stride;
        for (int r = 0; r < 4; ++r) {
            const Scalar v = static_cast<Scalar>(x[r][f]);
            for (int k = 0; k < Width; ++k) sum[r][k] += v * w[k];
        }
    }
    for (int r = 0; r < 4; ++r)
        for (int k = 0; k < Width; ++k) out[r][k] = sum[r][k];
}

// One label: sixteen partial sums over the features.
template <class Scalar, class Row>
inline Scalar dot(const Row& row, const Scalar* weights) {
    Scalar sum[16] = {};
    int64_t j = 0;
    for (; j + 16 <= row.length; j += 16)
        for (int k = 0; k < 16; ++k) sum[k] += static_cast<Scalar>(row.value(j + k)) * weights[row.feature(j + k)];
    for (; j < row.length; ++j) sum[j % 16] += static_cast<Scalar>(row.value(j)) * weights[row.feature(j)];
    for (int half = 8; half > 0; half /= 2)
        for (int k = 0; k < half; ++k) sum[k] += sum[k + half];
    return sum[0];
}

template <class Scalar, class Row>
inline void score_row(const Row& row, const Scalar* weights, int stride, Scalar* out) {
    if (stride == 1) {
        *out = dot(row, weights);
        return;
    }
    int k = 0;
    for (; k + 32 <= stride; k += 32) sum_tile<32>(row, weights + k, stride, out + k);
    switch (stride - k) {
        case 24: sum_tile<24>(row, weights + k, stride, out + k); break;
        case 16: sum_tile<16>(row, weights + k, stride, out + k); break;
        case 8: sum_tile<8>(row, weights + k, stride, out + k); break;
        case 4: sum_tile<4>(row, weights + k, stride, out + k); break;
        default: break;
    }
}

template <class Scalar, class Value>
void score_dense(const ScoreTask<Scalar>& task, const Value* values) {
    const int64_t d = task.features->n_features;
    const int stride = task.stride;
    const auto start = [&](int64_t i) { return values + (task.rows ? task.rows[i] : task.first_row + i) * d; };
    if (task.rows || (stride != 4 && stride != 8)) {
        for (int64_t r = 0; r < task.n_rows; ++r) score_row(DenseRow<Value>{start(r), d}, task.weights, stride, task.out + r * stride);
        return;
    }
    // The last row is summed again where fewer than four are left: other loops round otherwise, and what a row scores must not depend
    // on those it is asked for with.
    const auto place = [&](int64_t r) { return r < task.n_rows ? r : task.n_rows - 1; };
    for (int64_t r = 0; r < task.n_rows; r += 4) {
        const int64_t at[4] = {r, place(r + 1), place(r + 2), place(r + 3)};
        const Value* const x[4] = {start(at[0]), start(at[1]), start(at[2]), start(at[3])};
        Scalar* const out[4] = {task.out + at[0] * stride, task.out + at[1] * stride, task.out + at[2] * stride, task.out + at[3] * stride};
        if (stride == 4) sum_tile_of_four<4>(x, d, task.weights, stride, out);
        else sum_tile_of_four<8>(x, d, task.weights, stride, out);
    }
}

template <class Scalar, class MakeRow>
void score_sparse(const ScoreTask<Scalar>& task, MakeRow make_row) {
    const Features& x = *task.features;
    const auto row_number = [&](int64_t r) { return task.rows ? task.rows[r] : task.first_row + r; };
    for (int64_t r = 0; r < task.n_rows; ++r) {
        const int64_t row = row_number(r), begin = x.indptr[row];
        int64_t after = r + 1 < task.n_rows ? row_number(r + 1) : task.next_row >= 0 ? task.next_row : row;
        if (x.indptr[after] == x.indptr[after + 1]) after = row;
        const NextRow next{x.indices + x.indptr[after], x.indptr[after + 1] - x.indptr[after] - 1};
        score_row(make_row(begin, x.indptr[row + 1] - begin, next), task.weights, task.stride, task.out + r * task.stride);
    }
}

template <class Scalar>
void score_rows(const ScoreTask<Scalar>& task) {
    const Features& x = *task.features;
    if (!x.indptr) {
        if (x.values32) score_dense(task, x.values32);
        else score_dense(task, x.values64);
    } else if (x.values32) {
        score_sparse(task, [&x](int64_t begin, int64_t length, NextRow next) { return CsrRow<float>{x.indices + begin, x.values32 + begin, length, next}; });
    } else if (x.values64) {
        score_sparse(task, [&x](int64_t begin, int64_t length, NextRow next) { return CsrRow<double>{x.indices + begin, x.values64 + begin, length, next}; });
    } else {
        score_sparse(task, [&x](int64_t begin, int64_t length, NextRow next) { return OnesRow{x.indices + begin, length, next}; });
    }
}

// Without NaN both are the same: x86 has an instruction for the second, ARM for the first.
template <class Scalar>
inline Scalar larger(Scalar a, Scalar b) {
#if defined(__aarch64__) && defined(__GNUC__)
    if constexpr (sizeof(Scalar) == sizeof(float)) return __builtin_fmaxf(a, b);
    else return __builtin_fmax(a, b);
#else
    return a < b ? b : a;
#endif
}

template <int Width, class Scalar>
inline void max_plus_tile(const Scalar* previous, const Scalar* transition, int n_labels, int stride, Scalar* out) {
    Scalar best[Width];
    for (int k = 0; k < Width; ++k) best[k] = previous[0] + transition[k];
    for (int from = 1; from < n_labels; ++from) {
        const Scalar* row = transition + from * stride;
        for (int k = 0; k < Width; ++k) best[k] = larger(best[k], previous[from] + row[k]);
    }
    for (int k = 0; k < Width; ++k) out[k] = best[k];
}

template <class Scalar>
void max_plus(const Scalar* previous, const Scalar* transition, int n_labels, int stride, Scalar* out) {
    int k = 0;
    for (; k + 32 <= stride; k += 32) max_plus_tile<32>(previous, transition + k, n_labels, stride, out + k);
    switch (stride - k) {
        case 24: max_plus_tile<24>(previous, transition + k, n_labels, stride, out + k); break;
        case 16: max_plus_tile<16>(previous, transition + k, n_labels, stride, out + k); break;
        case 8: max_plus_tile<8>(previous, transition + k, n_labels, stride, out + k); break;
        case 4: max_plus_tile<4>(previous, transition + k, n_labels, stride, out + k); break;
        case 1: max_plus_tile<1>(previous, transition + k, n_labels, stride, out + k); break;
        default: break;
    }
}

#define MAXMARGIN_TEXT(name) #name
#define MAXMARGIN_NAME(name) MAXMARGIN_TEXT(name)

}  // namespace

Kernels table();
Kernels table() {
    return {MAXMARGIN_NAME(MAXMARGIN_ISA), score_rows<float>, score_rows<double>, max_plus<float>, max_plus<double>,
            kernel_values, kernel_values, kernel_values, kernel_values, add_panel, add_panel, add_panel, add_panel, box_bounds, box_bounds, max_plus_of_rows, max_plus_in_rows, solve_box, value_box, add_columns, add_columns, add_columns};
}

}  // namespace maxmargin::MAXMARGIN_ISA
