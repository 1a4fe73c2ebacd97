#include "scores/kernels.hpp"

#ifdef _MSC_VER
#include <intrin.h>
#endif

namespace maxmargin {

namespace baseline {
Kernels table();
}

#ifdef MAXMARGIN_X86_DISPATCH
namespace avx2 {
Kernels table();
}
namespace avx512 {
Kernels table();
}

#ifdef _MSC_VER
// Leaf 7 tells the instructions, XGETBV whether the system saves their registers.
static bool cpu_has(bool wide) {
    int leaf1[4], leaf7[4];
    __cpuid(leaf1, 1);
    __cpuidex(leaf7, 7, 0);
    const bool os_saves = (leaf1[2] & (1 << 27)) != 0;
    const unsigned long long state = os_saves ? _xgetbv(0) : 0;
    const bool has_avx2 = (leaf7[1] & (1 << 5)) != 0 && (leaf1[2] & (1 << 12)) != 0 && (state & 6) == 6;
    const int wide_bits = (1 << 16) | (1 << 17) | (1 << 30) | (1 << 31);
    return wide ? has_avx2 && (leaf7[1] & wide_bits) == wide_bits && (state & 0xe6) == 0xe6 : has_avx2;
}
#else
static bool cpu_has(bool wide) {
    if (wide)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#endif
#endif

static Kernels choose() {
#ifdef MAXMARGIN_X86_DISPATCH
    if (cpu_has(true)) return avx512::table();
    if (cpu_has(false)) return avx2::table();
#endif
    return baseline::table();
}

const Kernels& kernels() {
    static const Kernels chosen = choose();
    return chosen;
}

}  // namespace maxmargin
