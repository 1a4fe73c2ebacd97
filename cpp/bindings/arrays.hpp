// NumPy arrays in and out, and work that lets other Python threads run.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
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

inline void require_length(const char* name, size_t found, int64_t expected) {
    if (static_cast<int64_t>(found) != expected)
        throw std::invalid_argument(std::string(name) + " has " + std::to_string(found) + " entries, expected " + std::to_string(expected) + ".");
}

// Threads that notice Ctrl-C: signals are looked for by the calling thread.
inline maxmargin::Workers workers(int n_threads) {
    return {n_threads, [] {
                nb::gil_scoped_acquire gil;
                return PyErr_CheckSignals() != 0;
            }};
}
