// Messages through a table in either direction, without a transposed or padded copy of it. Compiled once per instruction set
// under the rules of kernels_isa.cpp. The last vector of a row reaches back over what is done already: the maximum of the
// same numbers is the same, and only tables of one column are gone through number by number.
#include "scores/isa/table_messages.hpp"

#include "scores/isa/lanes.hpp"

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

// Neighbouring numbers, to be maxima. On x86 GCC leaves those of arrays to scalar instructions: they are vectors there.
#if defined(__GNUC__) && !defined(__aarch64__)
constexpr int widest = vector_bytes / 8;

template <int Width>
struct Numbers {
    typedef double Vector __attribute__((vector_size(Width * 8)));
    Vector v;

    static Numbers load(const double* at) {
        Numbers numbers;
        __builtin_memcpy(&numbers.v, at, sizeof(Vector));
        return numbers;
    }
    void store(double* at) const { __builtin_memcpy(at, &v, sizeof(Vector)); }
    friend Numbers operator+(double a, Numbers b) { return {a + b.v}; }
    friend Numbers operator+(Numbers a, Numbers b) { return {a.v + b.v}; }
    void raise(Numbers other) { v = v < other.v ? other.v : v; }
};
template <>
struct Numbers<1> {
    double v;
    static Numbers load(const double* at) { return {*at}; }
    void store(double* at) const { *at = v; }
    friend Numbers operator+(double a, Numbers b) { return {a + b.v}; }
    friend Numbers operator+(Numbers a, Numbers b) { return {a.v + b.v}; }
    void raise(Numbers other) { v = larger(v, other.v); }
};
#else
constexpr int widest = 4;

template <int Width>
struct Numbers {
    double v[Width];

    static Numbers load(const double* at) {
        Numbers numbers;
        for (int k = 0; k < Width; ++k) numbers.v[k] = at[k];
        return numbers;
    }
    void store(double* at) const {
        for (int k = 0; k < Width; ++k) at[k] = v[k];
    }
    friend Numbers operator+(double a, Numbers b) {
        for (double& x : b.v) x = a + x;
        return b;
    }
    friend Numbers operator+(const Numbers& a, Numbers b) {
        for (int k = 0; k < Width; ++k) b.v[k] = a.v[k] + b.v[k];
        return b;
    }
    void raise(const Numbers& other) {
        for (int k = 0; k < Width; ++k) v[k] = larger(v[k], other.v[k]);
    }
};
#endif

// A strip of Count × Width columns, from c on: the maxima stay in registers while the rows go by. Width ≤ n_columns; the last Width
// columns may reach back over those before them.
template <int Width, int Count>
inline void columns_strip(const double* scores, const double* table, int n_rows, int64_t n_columns, int64_t c, double* out) {
    int64_t at[Count];
    Numbers<Width> best[Count];
    for (int k = 0; k < Count; ++k) {
        at[k] = c + (k + 1) * Width <= n_columns ? c + k * Width : n_columns - Width;
        best[k] = scores[0] + Numbers<Width>::load(table + at[k]);
    }
    for (int row = 1; row < n_rows; ++row) {
        table += n_columns;
        for (int k = 0; k < Count; ++k) best[k].raise(scores[row] + Numbers<Width>::load(table + at[k]));
    }
    for (int k = 0; k < Count; ++k) best[k].store(out + at[k]);
}

template <int Width, int Count>
inline void columns_from(const double* scores, const double* table, int n_rows, int64_t n_columns, int64_t c, double* out) {
    if constexpr (Count > 1)
        if (c + (Count - 1) * Width >= n_columns) return columns_from<Width, Count - 1>(scores, table, n_rows, n_columns, c, out);
    columns_strip<Width, Count>(scores, table, n_rows, n_columns, c, out);
}

// Eight vectors leave registers for what is added to them.
template <int Width>
inline void all_columns(const double* scores, const double* table, int n_rows, int64_t n_columns, double* out) {
    for (int64_t c = 0; c < n_columns; c += 8 * Width) columns_from<Width, 8>(scores, table, n_rows, n_columns, c, out);
}

// One row after the other, as they lie in memory, Width columns at a time; Width ≤ n_columns.
template <int Width>
inline Numbers<Width> best_of_row(const double* scores, const double* row, int64_t n_columns) {
    Numbers<Width> best = Numbers<Width>::load(scores) + Numbers<Width>::load(row);
    int64_t c = Width;
    for (; c + Width <= n_columns; c += Width) best.raise(Numbers<Width>::load(scores + c) + Numbers<Width>::load(row + c));
    if (c < n_columns) best.raise(Numbers<Width>::load(scores + n_columns - Width) + Numbers<Width>::load(row + n_columns - Width));
    return best;
}

template <int Width>
inline void all_rows(const double* scores, const double* table, int n_rows, int64_t n_columns, double* out) {
    for (int r = 0; r < n_rows; ++r) {
        double of_row[Width];
        best_of_row<Width>(scores, table + r * n_columns, n_columns).store(of_row);
        for (int half = Width / 2; half > 0; half /= 2)
            for (int k = 0; k < half; ++k) of_row[k] = larger(of_row[k], of_row[k + half]);
        out[r] = of_row[0];
    }
}

}  // namespace

void max_plus_of_rows(const double* scores, const double* table, int n_rows, int n_columns, double* out) {
    if (n_columns >= widest) return all_columns<widest>(scores, table, n_rows, n_columns, out);
    if constexpr (widest > 4)
        if (n_columns >= 4) return all_columns<4>(scores, table, n_rows, n_columns, out);
    if (n_columns >= 2) all_columns<2>(scores, table, n_rows, n_columns, out);
    else all_columns<1>(scores, table, n_rows, n_columns, out);
}

void max_plus_in_rows(const double* scores, const double* table, int n_rows, int n_columns, double* out) {
    // Wider vectors leave more to be compared at the end of each row, and GCC takes those that the instruction set lacks apart.
    constexpr int in_row = widest < 4 ? widest : 4;
    if (n_columns >= in_row) all_rows<in_row>(scores, table, n_rows, n_columns, out);
    else if (n_columns >= 2) all_rows<2>(scores, table, n_rows, n_columns, out);
    else all_rows<1>(scores, table, n_rows, n_columns, out);
}

}  // namespace maxmargin::MAXMARGIN_ISA
