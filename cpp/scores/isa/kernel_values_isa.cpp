// Values of kernel functions. Compiled once per instruction set, under the rules of kernels_isa.cpp: no inline function of another
// file, no standard header but <cstdint>.
#include "scores/isa/kernel_values.hpp"

#include "scores/isa/lanes.hpp"

namespace maxmargin::MAXMARGIN_ISA {

namespace {

// Vectors of a panel.
template <class L>
constexpr int per_panel = panel_rows / L::width;

// 2^x stops here: smaller numbers are denormal, and slow.
template <class Scalar>
constexpr Scalar least_exponent = sizeof(Scalar) == sizeof(float) ? Scalar(-115) : Scalar(-1000);

// Coefficients of 2^x for |x| ≤ ½: for float those of the smallest largest relative error (1e-7) with 2^0 = 1, for double the series
// log(2)^k / k!, which ends where the next term is below half a unit in the last place.
template <class Scalar>
struct PowerOfTwo;
template <>
struct PowerOfTwo<float> {
    static constexpr int n_pairs = 3;
    static constexpr float coefficients[2 * n_pairs] = {
        1.0f,
        6.931469775266926e-01f,
        2.402224212357952e-01f,
        5.5507339628014095e-02f,
        9.671511324353598e-03f,
        1.3264652392174137e-03f,
    };
};
template <>
struct PowerOfTwo<double> {
    static constexpr int n_pairs = 7;
    static constexpr double coefficients[2 * n_pairs] = {
        1.0,
        6.931471805599453e-01,
        2.4022650695910072e-01,
        5.550410866482158e-02,
        9.618129107628477e-03,
        1.3333558146428443e-03,
        1.5403530393381608e-04,
        1.5252733804059841e-05,
        1.3215486790144308e-06,
        1.0178086009239699e-07,
        7.054911620801122e-09,
        4.445538271870812e-10,
        2.5678435993488202e-11,
        1.3691488853904128e-12,
    };
};

// 2^x for least_exponent ≤ x ≤ 100: 2^n times the power of the rest, a polynomial in its square, so that fewer terms wait for others.
template <class Scalar>
inline Lanes<Scalar> power_of_two(Lanes<Scalar> x) {
    using L = Lanes<Scalar>;
    using Power = PowerOfTwo<Scalar>;
    const L shifted = x + L::all(L::magic), rest = x - (shifted - L::all(L::magic)), square = rest * rest;
    const auto pair = [&](int k) { return L::all(Power::coefficients[2 * k]) + L::all(Power::coefficients[2 * k + 1]) * rest; };
    L sum = pair(Power::n_pairs - 1);
#pragma GCC unroll 8
    for (int k = Power::n_pairs - 2; k >= 0; --k) sum = pair(k) + sum * square;
    return sum.scaled(shifted);
}

template <class Scalar>
inline Lanes<Scalar> power(Lanes<Scalar> base, int32_t exponent) {
    Lanes<Scalar> result = Lanes<Scalar>::all(1);
    for (; exponent > 0; exponent >>= 1) {
        if (exponent & 1) result = result * base;
        base = base * base;
    }
    return result;
}

// The hyperbolic tangent, by e^2x; beyond 20 it is 1 to the last digit.
template <class Scalar>
inline Lanes<Scalar> tangent(Lanes<Scalar> x) {
    using L = Lanes<Scalar>;
    const L exponent = x.at_least(L::all(-20)).at_most(L::all(20)) * L::all(static_cast<Scalar>(2.8853900817779268));
    return L::all(1) - L::all(2) / (L::all(1) + power_of_two(exponent));
}

// The kernel of products x·z.
template <KernelKind kind, class Scalar>
inline Lanes<Scalar> value(const KernelFunction& function, Lanes<Scalar> product) {
    using L = Lanes<Scalar>;
    if constexpr (kind == KernelKind::rbf) return power_of_two(product.at_least(L::all(least_exponent<Scalar>)));
    if constexpr (kind == KernelKind::linear) return product;
    const L inside = L::all(static_cast<Scalar>(function.gamma)) * product + L::all(static_cast<Scalar>(function.coef0));
    if constexpr (kind == KernelKind::polynomial) return power(inside, function.degree);
    return tangent(inside);
}

// Turns products with a panel into kernel values.
template <KernelKind kind, class Scalar>
inline void apply(const KernelFunction& function, int64_t n_values, Scalar* values) {
    if constexpr (kind == KernelKind::linear) return;
    using L = Lanes<Scalar>;
    for (int64_t k = 0; k < n_values; k += panel_rows) {
        L of_panel[per_panel<L>];
#pragma GCC unroll 8
        for (int j = 0; j < per_panel<L>; ++j) of_panel[j] = value<kind>(function, L::load(values + k + j * L::width));
#pragma GCC unroll 8
        for (int j = 0; j < per_panel<L>; ++j) of_panel[j].store(values + k + j * L::width);
    }
}

// So many tiles meet a panel at once: an addition waits four cycles for the one before it to the same sum, and two begin in each.
constexpr bool has_many_registers = vector_bytes == 64;
template <class Scalar>
constexpr int tiles_at_once = !has_many_registers ? 1 : sizeof(Scalar) == sizeof(float) ? 4 : 5;

// The kernel of the panel and some tiles, from the given one on. (Linear: their products.)
template <KernelKind kind, int n_tiles, class Scalar>
inline void meet_tiles(const KernelTask<Scalar>& task, int64_t tile) {
    using L = Lanes<Scalar>;
    constexpr int width = tile_points<Scalar>, n_points = n_tiles * width;
    const Scalar* points = task.points + tile * width * task.n_features;
    const Scalar* terms = task.point_terms + tile * width;
    Scalar* values = task.values + tile * width * panel_rows;
    L sum[n_points][per_panel<L>];
#pragma GCC unroll 32
    for (int p = 0; p < n_points; ++p)
        for (int k = 0; k < per_panel<L>; ++k) {
            sum[p][k] = L::all(terms[p]) + L::load(task.row_terms + k * L::width);
            if (task.adds) sum[p][k] = sum[p][k] + L::load(values + p * panel_rows + k * L::width);
        }
    for (int64_t f = 0; f < task.n_features; ++f) {
        L x[per_panel<L>];
        for (int k = 0; k < per_panel<L>; ++k) x[k] = L::load(task.rows + f * panel_rows + k * L::width);
#pragma GCC unroll 32
        for (int p = 0; p < n_points; ++p) {
            const L z = L::all_at(points + (p / width * task.n_features + f) * width + p % width);
            for (int k = 0; k < per_panel<L>; ++k) sum[p][k] = sum[p][k] + z * x[k];
        }
    }
#pragma GCC unroll 32
    for (int p = 0; p < n_points; ++p)
        for (int k = 0; k < per_panel<L>; ++k) value<kind>(task.function, sum[p][k]).store(values + p * panel_rows + k * L::width);
}

template <KernelKind kind, class Scalar>
inline void meet_all(const KernelTask<Scalar>& task) {
    constexpr int at_once = tiles_at_once<Scalar>;
    // Where sums need all registers, kernels are taken of them in a loop of its own.
    constexpr KernelKind first = has_many_registers ? kind : KernelKind::linear;
    int64_t tile = 0;
    for (; tile + at_once <= task.n_tiles; tile += at_once) meet_tiles<first, at_once>(task, tile);
    for (; tile < task.n_tiles; ++tile) meet_tiles<first, 1>(task, tile);
    if constexpr (!has_many_registers) apply<kind>(task.function, task.n_tiles * tile_points<Scalar> * panel_rows, task.values);
}

template <class Scalar>
void sum_products(const SparseKernelTask<Scalar>& task) {
    using L = Lanes<Scalar>;
    L sum[per_panel<L>];
    for (int k = 0; k < per_panel<L>; ++k) sum[k] = L::all(task.row_term) + L::load(task.point_terms + k * L::width);
    for (int64_t j = 0; j < task.length; ++j) {
        const Scalar* z = task.points + static_cast<int64_t>(task.indices[j]) * panel_rows;
        const L x = L::all_at(task.entries + j);
        for (int k = 0; k < per_panel<L>; ++k) sum[k] = sum[k] + x * L::load(z + k * L::width);
    }
    for (int k = 0; k < per_panel<L>; ++k) sum[k].store(task.values + k * L::width);
}

// So many values are added up in Scalar, by several sums, of which none waits for another.
constexpr int64_t most_added = 64;
constexpr int n_sums = 4;

template <class Scalar>
inline void add_values(const PanelSum<Scalar>& task) {
    using L = Lanes<Scalar>;
    for (int64_t first = 0; first < task.n_points; first += most_added) {
        const int64_t end = first + most_added < task.n_points ? first + most_added : task.n_points;
        L sum[n_sums][per_panel<L>];
        for (int s = 0; s < n_sums; ++s)
            for (int k = 0; k < per_panel<L>; ++k) sum[s][k] = L::all(0);
        const auto add = [&](int64_t p, L* to) {
            const L a = L::all(task.coefficients[p]);
            for (int k = 0; k < per_panel<L>; ++k) to[k] = to[k] + a * L::load(task.values + p * panel_rows + k * L::width);
        };
        int64_t p = first;
        for (; p + n_sums <= end; p += n_sums)
#pragma GCC unroll 4
            for (int s = 0; s < n_sums; ++s) add(p + s, sum[s]);
        for (; p < end; ++p) add(p, sum[0]);
        Scalar totals[panel_rows];
        for (int k = 0; k < per_panel<L>; ++k) ((sum[0][k] + sum[1][k]) + (sum[2][k] + sum[3][k])).store(totals + k * L::width);
        for (int r = 0; r < panel_rows; ++r) task.sums[r] += static_cast<double>(totals[r]);
    }
}

template <class Scalar>
inline void add_values(const MirroredSum<Scalar>& task) {
    using L = Lanes<Scalar>;
    L a[per_panel<L>];
    for (int k = 0; k < per_panel<L>; ++k) a[k] = L::load(task.coefficients + k * L::width);
    for (int64_t p = 0; p < task.n_points; ++p)
        for (int k = 0; k < per_panel<L>; ++k) {
            const int64_t at = p * panel_rows + k * L::width;
            (L::load(task.sums + at) + a[k] * L::load(task.values + at)).store(task.sums + at);
        }
}

template <class Scalar>
inline void subtract_distances(const BoxTask<Scalar>& task) {
    using L = Lanes<Scalar>;
    for (int64_t k = 0; k < task.n_boxes; k += L::width) {
        L sum = L::all(0);
        for (int64_t f = 0; f < task.n_features; ++f) {
            const L above = L::load(task.many_lows + f * task.n_boxes + k) - L::all(task.highs[f * task.step]);
            const L below = L::all(task.lows[f * task.step]) - L::load(task.many_highs + f * task.n_boxes + k);
            const L gap = above.at_least(below).at_least(L::all(0));
            sum = sum + gap * gap;
        }
        (L::load(task.bounds + k) - L::all(Scalar(0.5)) * sum).store(task.bounds + k);
    }
}

// Calls use<kind>() of the function's kind.
template <class Use>
inline void by_kind(KernelKind kind, Use&& use) {
    switch (kind) {
        case KernelKind::linear: return use.template operator()<KernelKind::linear>();
        case KernelKind::polynomial: return use.template operator()<KernelKind::polynomial>();
        case KernelKind::rbf: return use.template operator()<KernelKind::rbf>();
        case KernelKind::sigmoid: return use.template operator()<KernelKind::sigmoid>();
    }
}

template <class Scalar>
inline void values_of(const KernelTask<Scalar>& task) {
    by_kind(task.function.kind, [&]<KernelKind kind>() { meet_all<kind>(task); });
}

template <class Scalar>
inline void values_of(const SparseKernelTask<Scalar>& task) {
    sum_products(task);
    by_kind(task.function.kind, [&]<KernelKind kind>() { apply<kind>(task.function, panel_rows, task.values); });
}

}  // namespace

void kernel_values(const KernelTask<float>& task) { values_of(task); }
void kernel_values(const KernelTask<double>& task) { values_of(task); }
void kernel_values(const SparseKernelTask<float>& task) { values_of(task); }
void kernel_values(const SparseKernelTask<double>& task) { values_of(task); }
void add_panel(const PanelSum<float>& task) { add_values(task); }
void add_panel(const PanelSum<double>& task) { add_values(task); }
void add_panel(const MirroredSum<float>& task) { add_values(task); }
void add_panel(const MirroredSum<double>& task) { add_values(task); }
void box_bounds(const BoxTask<float>& task) { subtract_distances(task); }
void box_bounds(const BoxTask<double>& task) { subtract_distances(task); }

}  // namespace maxmargin::MAXMARGIN_ISA
