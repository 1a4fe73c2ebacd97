#include "scores/kernels.hpp"

#include <atomic>
#include <stdexcept>

#include "scores/instruction_sets.hpp"

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

// The kernels this CPU can run, the fastest first.
static const std::vector<Kernels>& runnable() {
    static const std::vector<Kernels> all = [] {
        std::vector<Kernels> tables;
#ifdef MAXMARGIN_X86_DISPATCH
        if (cpu_has(true)) tables.push_back(avx512::table());
        if (cpu_has(false)) tables.push_back(avx2::table());
#endif
        tables.push_back(baseline::table());
        return tables;
    }();
    return all;
}

static std::atomic<const Kernels*>& chosen() {
    static std::atomic<const Kernels*> kernels{&runnable().front()};
    return kernels;
}

const Kernels& kernels() { return *chosen().load(std::memory_order_relaxed); }

std::vector<std::string> instruction_sets() {
    std::vector<std::string> names;
    for (const Kernels& kernels : runnable()) names.emplace_back(kernels.name);
    return names;
}

void use_instruction_set(const std::string& name) {
    for (const Kernels& kernels : runnable())
        if (kernels.name == name) {
            chosen().store(&kernels, std::memory_order_relaxed);
            return;
        }
    throw std::invalid_argument("this CPU and build have no instruction set '" + name + "'.");
}

}  // namespace maxmargin
