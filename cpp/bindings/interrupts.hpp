// Work that lets other Python threads run, and ends on Ctrl-C or when the time of the calling thread is up.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>

#include "threads/parallel.hpp"

// More threads than this help nobody, and each has memory of its own.
constexpr int most_threads = 1024;

// Whether the calling thread has been asked to end its work; a Python error then says why.
bool is_to_end();

inline maxmargin::Workers workers(int n_threads) { return {std::clamp(n_threads, 1, most_threads), is_to_end}; }

// For work that touches no Python object; it ends where it calls heartbeat().
template <class Work>
auto interruptible(Work&& work) {
    using Result = std::invoke_result_t<Work>;
    nanobind::gil_scoped_release release;
    if constexpr (std::is_void_v<Result>) {
        maxmargin::for_each_chunk(1, workers(1), [&](int64_t, int) { work(); });
    } else {
        std::optional<Result> result;
        maxmargin::for_each_chunk(1, workers(1), [&](int64_t, int) { result.emplace(work()); });
        return std::move(*result);
    }
}
