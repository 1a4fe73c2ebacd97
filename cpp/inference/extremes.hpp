// The larger and the smaller of two numbers without a branch, which random scores would mispredict half of the time.
#pragma once

namespace maxmargin {

// Without NaN both ways are the same: x86 has an instruction for the second, ARM for the first.
inline double larger(double a, double b) {
#if defined(__aarch64__) && defined(__GNUC__)
    return __builtin_fmax(a, b);
#else
    return a < b ? b : a;
#endif
}

inline double smaller(double a, double b) {
#if defined(__aarch64__) && defined(__GNUC__)
    return __builtin_fmin(a, b);
#else
    return b < a ? b : a;
#endif
}

}  // namespace maxmargin
