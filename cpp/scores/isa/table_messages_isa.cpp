// Messages through a table in either direction, without a transposed or padded copy of it. Compiled once per instruction set
// under the rules of kernels_isa.cpp. Tiles at the end of a row reach back over what is done already: the maximum of the
// same numbers is the same, and no loop over single numbers is left but for tables narrower than a vector.
#include "scores/isa/table_messages.hpp"

#include <cstdint>

namespace maxmargin::MAXMARGIN_ISA {

namespace {

// Without NaN both are the same: x86 has an instruction for the second, ARM for the first.
inline double larger(double a, double b) {
#if defined(__aarch64__) && defined(__GNUC__)
    return __builtin_fmax(a, b);
#else
    return a < b ? b : a;
#endif
}

// Width neighbouring columns: the maxima stay in registers while the rows go by.
template <int Width>
inline void columns_tile(const double* scores, const double* table, int n_rows, int64_t n_columns, double* out) {
    double best[Width];
    for (int k = 0; k < Width; ++k) best[k] = scores[0] + table[k];
    for (int row = 1; row < n_rows; ++row) {
        const double* t = table + row * n_columns;
        const double score = scores[row];
        for (int k = 0; k < Width; ++k) best[k] = larger(best[k], score + t[k]);
    }
    for (int k = 0; k < Width; ++k) out[k] = best[k];
}

// Rows neighbouring rows, Width columns at a time; Width ≤ n_columns.
template <int Rows, int Width>
inline void rows_tile(const double* scores, const double* table, int64_t n_columns, double* out) {
    double best[Rows][Width];
    for (int r = 0; r < Rows; ++r)
        for (int k = 0; k < Width; ++k) best[r][k] = scores[k] + table[r * n_columns + k];
    for (int64_t c = Width; c < n_columns; c += Width) {
        const int64_t at = c + Width <= n_columns ? c : n_columns - Width;
        const double* s = scores + at;
        for (int r = 0; r < Rows; ++r) {
            const double* t = table + r * n_columns + at;
            for (int k = 0; k < Width; ++k) best[r][k] = larger(best[r][k], s[k] + t[k]);
        }
    }
    for (int r = 0; r < Rows; ++r) {
        for (int half = Width / 2; half > 0; half /= 2)
            for (int k = 0; k < half; ++k) best[r][k] = larger(best[r][k], best[r][k + half]);
        out[r] = best[r][0];
    }
}

template <int Width>
inline void all_rows(const double* scores, const double* table, int n_rows, int64_t n_columns, double* out) {
    if (n_rows < 4) {
        for (int r = 0; r < n_rows; ++r) rows_tile<1, Width>(scores, table + r * n_columns, n_columns, out + r);
        return;
    }
    for (int r = 0; r < n_rows; r += 4) {
        const int at = r + 4 <= n_rows ? r : n_rows - 4;
        rows_tile<4, Width>(scores, table + at * n_columns, n_columns, out + at);
    }
}

}  // namespace

void max_plus_of_rows(const double* scores, const double* table, int n_rows, int n_columns, double* out) {
    int c = 0;
    while (c < n_columns) {
        const int left = n_columns - c;
        if (left > 8 && n_columns >= 16) {
            const int at = left < 16 ? n_columns - 16 : c;
            columns_tile<16>(scores, table + at, n_rows, n_columns, out + at);
            c = at + 16;
        } else if (left > 4 && n_columns >= 8) {
            const int at = left < 8 ? n_columns - 8 : c;
            columns_tile<8>(scores, table + at, n_rows, n_columns, out + at);
            c = at + 8;
        } else if (left > 2 && n_columns >= 4) {
            const int at = left < 4 ? n_columns - 4 : c;
            columns_tile<4>(scores, table + at, n_rows, n_columns, out + at);
            c = at + 4;
        } else if (left > 1) {
            columns_tile<2>(scores, table + c, n_rows, n_columns, out + c);
            c += 2;
        } else {
            columns_tile<1>(scores, table + c, n_rows, n_columns, out + c);
            c += 1;
        }
    }
}

void max_plus_in_rows(const double* scores, const double* table, int n_rows, int n_columns, double* out) {
    if (n_columns >= 4) all_rows<4>(scores, table, n_rows, n_columns, out);
    else if (n_columns >= 2) all_rows<2>(scores, table, n_rows, n_columns, out);
    else all_rows<1>(scores, table, n_rows, n_columns, out);
}

}  // namespace maxmargin::MAXMARGIN_ISA
