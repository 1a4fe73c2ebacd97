// Messages through a table in either direction, without a transposed or padded copy of it. Compiled once per instruction set
// under the rules of kernels_isa.cpp. Tiles at the end of a row reach back over what is done already: the maximum of the
// same numbers is the same, and no loop over single numbers is left but for tables narrower than a vector.
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
struct Tile {
    static constexpr int per_vector = Width < widest ? Width : widest;
    static constexpr int n_vectors = Width / per_vector;
    typedef double Vector __attribute__((vector_size(per_vector * 8)));
    Vector v[n_vectors];

    static Tile load(const double* at) {
        Tile tile;
        __builtin_memcpy(tile.v, at, sizeof(tile.v));
        return tile;
    }
    void store(double* at) const { __builtin_memcpy(at, v, sizeof(v)); }
    friend Tile operator+(double a, Tile b) {
        for (Vector& x : b.v) x = a + x;
        return b;
    }
    friend Tile operator+(const Tile& a, Tile b) {
        for (int k = 0; k < n_vectors; ++k) b.v[k] = a.v[k] + b.v[k];
        return b;
    }
    void raise(const Tile& other) {
        for (int k = 0; k < n_vectors; ++k) v[k] = v[k] < other.v[k] ? other.v[k] : v[k];
    }
};
template <>
struct Tile<1> {
    double v;
    static Tile load(const double* at) { return {*at}; }
    void store(double* at) const { *at = v; }
    friend Tile operator+(double a, Tile b) { return {a + b.v}; }
    friend Tile operator+(Tile a, Tile b) { return {a.v + b.v}; }
    void raise(Tile other) { v = larger(v, other.v); }
};
#else
template <int Width>
struct Tile {
    double v[Width];

    static Tile load(const double* at) {
        Tile tile;
        for (int k = 0; k < Width; ++k) tile.v[k] = at[k];
        return tile;
    }
    void store(double* at) const {
        for (int k = 0; k < Width; ++k) at[k] = v[k];
    }
    friend Tile operator+(double a, Tile b) {
        for (double& x : b.v) x = a + x;
        return b;
    }
    friend Tile operator+(const Tile& a, Tile b) {
        for (int k = 0; k < Width; ++k) b.v[k] = a.v[k] + b.v[k];
        return b;
    }
    void raise(const Tile& other) {
        for (int k = 0; k < Width; ++k) v[k] = larger(v[k], other.v[k]);
    }
};
#endif

// Width neighbouring columns: the maxima stay in registers while the rows go by.
template <int Width>
inline void columns_tile(const double* scores, const double* table, int n_rows, int64_t n_columns, double* out) {
    Tile<Width> best = scores[0] + Tile<Width>::load(table);
    for (int row = 1; row < n_rows; ++row) best.raise(scores[row] + Tile<Width>::load(table + row * n_columns));
    best.store(out);
}

// Rows neighbouring rows, Width columns at a time; Width ≤ n_columns.
template <int Rows, int Width>
inline void rows_tile(const double* scores, const double* table, int64_t n_columns, double* out) {
    using Columns = Tile<Width>;
    Columns best[Rows];
    for (int r = 0; r < Rows; ++r) best[r] = Columns::load(scores) + Columns::load(table + r * n_columns);
    for (int64_t c = Width; c < n_columns; c += Width) {
        const int64_t at = c + Width <= n_columns ? c : n_columns - Width;
        const Columns s = Columns::load(scores + at);
        for (int r = 0; r < Rows; ++r) best[r].raise(s + Columns::load(table + r * n_columns + at));
    }
    for (int r = 0; r < Rows; ++r) {
        double of_row[Width];
        best[r].store(of_row);
        for (int half = Width / 2; half > 0; half /= 2)
            for (int k = 0; k < half; ++k) of_row[k] = larger(of_row[k], of_row[k + half]);
        out[r] = of_row[0];
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
