// NumPy arrays in and out, and work that lets other Python threads run.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "threads/parallel.hpp"

namespace nb = nanobind;

template <class T>
using Array1 = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Array2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Mutable1 = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
std::span<const T> as_span(const Array1<T>& array) {
    return {array.data(), array.shape(0)};
}

template <class Optional>
auto data_or_null(const Optional& array) {
    return array ? array->data() : nullptr;
}

// A NumPy array that owns the vector.
template <class T>
nb::ndarray<nb::numpy, T> to_numpy(std::vector<T>&& values, std::initializer_list<size_t> shape) {
    auto* owned = new std::vector<T>(std::move(values));
    nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::ndarray<nb::numpy, T>(owned->data(), shape, owner);
}

template <class T>
nb::ndarray<nb::numpy, T> to_numpy(std::vector<T>&& values) {
    const size_t n = values.size();
    return to_numpy(std::move(values), {n});
}

// More threads than this help nobody, and each has memory of its own.
constexpr int most_threads = 1024;

// Threads that notice Ctrl-C: signals are looked for by the calling thread.
inline maxmargin::Workers workers(int n_threads) {
    return {std::clamp(n_threads, 1, most_threads), [] {
                nb::gil_scoped_acquire gil;
                return PyErr_CheckSignals() != 0;
            }};
}

// Lets other Python threads run during work that touches no Python object, and Ctrl-C end it where it calls heartbeat().
template <class Work>
auto interruptible(Work&& work) {
    using Result = std::invoke_result_t<Work>;
    nb::gil_scoped_release release;
    if constexpr (std::is_void_v<Result>) {
        maxmargin::for_each_chunk(1, workers(1), [&](int64_t, int) { work(); });
    } else {
        std::optional<Result> result;
        maxmargin::for_each_chunk(1, workers(1), [&](int64_t, int) { result.emplace(work()); });
        return std::move(*result);
    }
}
