// Arithmetic on weights, most of it on float copies for points that only steer a search. Sums are formed in double.
#pragma once

#include <cstddef>
#include <cstdint>

namespace maxmargin {

template <class A, class B>
double dot(const A* a, const B* b, size_t n) {
    double sum[8] = {};
    size_t j = 0;
    for (; j + 8 <= n; j += 8)
        for (int lane = 0; lane < 8; ++lane) sum[lane] += static_cast<double>(a[j + lane]) * static_cast<double>(b[j + lane]);
    for (; j < n; ++j) sum[0] += static_cast<double>(a[j]) * static_cast<double>(b[j]);
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

// a ← (1 − t) a + t b
template <class Scalar>
void mix(Scalar* a, const Scalar* b, double t, size_t n) {
    const auto keep = static_cast<Scalar>(1.0 - t), take = static_cast<Scalar>(t);
    for (size_t j = 0; j < n; ++j) a[j] = keep * a[j] + take * b[j];
}

}  // namespace maxmargin
