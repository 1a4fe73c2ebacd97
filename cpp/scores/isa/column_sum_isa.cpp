// Sums of columns, several at once: the sums are read and written once for all of them. Compiled once per instruction set, under the rules of
// kernels_isa.cpp.
#include "scores/isa/column_sum.hpp"

namespace maxmargin::MAXMARGIN_ISA {

namespace {

constexpr int at_once = 8;

template <int n, class Scalar, class Sum>
void add_some(const Scalar* const* columns, const double* factors, int64_t first, int64_t length, Sum* sums) {
    Sum a[n];
    const Scalar* at[n];
    for (int p = 0; p < n; ++p) {
        a[p] = static_cast<Sum>(factors[p]);
        at[p] = columns[p] + first;
    }
#if defined(__GNUC__)
#pragma GCC ivdep
#endif
    for (int64_t r = 0; r < length; ++r) {
        Sum sum = sums[r];
        for (int p = 0; p < n; ++p) sum += a[p] * static_cast<Sum>(at[p][r]);
        sums[r] = sum;
    }
}

template <class Scalar, class Sum>
void add_all(const ColumnSum<Scalar, Sum>& task) {
    int64_t p = 0;
    for (; p + at_once <= task.n_columns; p += at_once) add_some<at_once>(task.columns + p, task.factors + p, task.first, task.length, task.sums);
    for (; p < task.n_columns; ++p) add_some<1>(task.columns + p, task.factors + p, task.first, task.length, task.sums);
}

}  // namespace

void add_columns(const ColumnSum<float, float>& task) { add_all(task); }
void add_columns(const ColumnSum<float, double>& task) { add_all(task); }
void add_columns(const ColumnSum<double, double>& task) { add_all(task); }

}  // namespace maxmargin::MAXMARGIN_ISA
