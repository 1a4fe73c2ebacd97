// Several numbers at once, for the files of this folder: each has a copy of its own, under the rules of kernels_isa.cpp.
#pragma once

#include <cstdint>

namespace maxmargin::MAXMARGIN_ISA {

namespace {

// Vectors of the widest kind the instruction set has; compilers without such types get arrays that they may vectorise.
#if defined(__AVX512F__)
constexpr int vector_bytes = 64;
#elif defined(__AVX__)
constexpr int vector_bytes = 32;
#else
constexpr int vector_bytes = 16;
#endif

template <class Scalar>
struct IntegerOf {
    using type = int32_t;
};
template <>
struct IntegerOf<double> {
    using type = int64_t;
};

template <class Scalar>
struct Lanes {
    static constexpr int width = vector_bytes / static_cast<int>(sizeof(Scalar));
    using Integer = typename IntegerOf<Scalar>::type;
#if defined(__GNUC__)
    typedef Scalar Vector __attribute__((vector_size(vector_bytes)));
    typedef Integer IntegerVector __attribute__((vector_size(vector_bytes)));
    Vector v;

    static Lanes all(Scalar x) { return {x - Vector{}}; }
    static Lanes load(const Scalar* at) {
        Lanes lanes;
        __builtin_memcpy(&lanes.v, at, sizeof(Vector));
        return lanes;
    }
    void store(Scalar* at) const { __builtin_memcpy(at, &v, sizeof(Vector)); }
    friend Lanes operator+(Lanes a, Lanes b) { return {a.v + b.v}; }
    friend Lanes operator-(Lanes a, Lanes b) { return {a.v - b.v}; }
    friend Lanes operator*(Lanes a, Lanes b) { return {a.v * b.v}; }
    friend Lanes operator/(Lanes a, Lanes b) { return {a.v / b.v}; }
    Lanes at_least(Lanes low) const { return {v < low.v ? low.v : v}; }
    Lanes at_most(Lanes high) const { return {v > high.v ? high.v : v}; }
    Lanes if_positive(Lanes yes, Lanes no) const { return {v > 0 ? yes.v : no.v}; }
    // v · 2^n, from n + magic: n goes into the exponent.
    Lanes scaled(Lanes shifted) const { return {(Vector)((IntegerVector)v + ((IntegerVector)shifted.v << mantissa_bits))}; }
#else
    Scalar v[width];

    template <class Value>
    static Lanes each(Value&& value) {
        Lanes lanes;
        for (int k = 0; k < width; ++k) lanes.v[k] = value(k);
        return lanes;
    }
    static Lanes all(Scalar x) {
        return each([&](int) { return x; });
    }
    static Lanes load(const Scalar* at) {
        return each([&](int k) { return at[k]; });
    }
    void store(Scalar* at) const {
        for (int k = 0; k < width; ++k) at[k] = v[k];
    }
    friend Lanes operator+(Lanes a, Lanes b) {
        return each([&](int k) { return a.v[k] + b.v[k]; });
    }
    friend Lanes operator-(Lanes a, Lanes b) {
        return each([&](int k) { return a.v[k] - b.v[k]; });
    }
    friend Lanes operator*(Lanes a, Lanes b) {
        return each([&](int k) { return a.v[k] * b.v[k]; });
    }
    friend Lanes operator/(Lanes a, Lanes b) {
        return each([&](int k) { return a.v[k] / b.v[k]; });
    }
    Lanes at_least(Lanes low) const {
        return each([&](int k) { return v[k] < low.v[k] ? low.v[k] : v[k]; });
    }
    Lanes at_most(Lanes high) const {
        return each([&](int k) { return v[k] > high.v[k] ? high.v[k] : v[k]; });
    }
    Lanes if_positive(Lanes yes, Lanes no) const {
        return each([&](int k) { return v[k] > 0 ? yes.v[k] : no.v[k]; });
    }
    Lanes scaled(Lanes shifted) const {
        return each([&](int k) {
            return __builtin_bit_cast(Scalar, __builtin_bit_cast(Integer, v[k]) + (__builtin_bit_cast(Integer, shifted.v[k]) << mantissa_bits));
        });
    }
#endif

    // The number there in all lanes. On Arm a multiplication takes it from one lane of a register, whereas a load into all lanes, which
    // compilers prefer, keeps one of the two arithmetic units busy.
    static Lanes all_at(const Scalar* at) {
        Scalar x = *at;
#if defined(__aarch64__) && defined(__GNUC__)
        asm("" : "+w"(x));
#endif
        return all(x);
    }

    // Added to a number of moderate size, it leaves the nearest whole number in the last bits.
    static constexpr Scalar magic = sizeof(Scalar) == sizeof(float) ? Scalar(12582912) : Scalar(6755399441055744);

  private:
    static constexpr int mantissa_bits = sizeof(Scalar) == sizeof(float) ? 23 : 52;
};

}  // namespace

}  // namespace maxmargin::MAXMARGIN_ISA
