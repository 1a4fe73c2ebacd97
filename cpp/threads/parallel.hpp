// Work in fixed chunks over a few threads. Chunks do not depend on the number of threads, so neither do results.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>

namespace maxmargin {

// Thrown when poll() asked for an end: some chunks are done, others are not.
struct Interrupted : std::runtime_error {
    Interrupted() : std::runtime_error("interrupted") {}
};

struct Workers {
    int n_threads = 1;
    // Asked by the calling thread about every 50 ms; true ends the work.
    std::function<bool()> poll;
};

// Calls work(chunk, thread) for chunk = 0 … n_chunks − 1, in any order; rethrows the first exception.
void for_each_chunk(int64_t n_chunks, const Workers& workers, const std::function<void(int64_t chunk, int thread)>& work);

// To be called every millisecond or so inside long work on a chunk: throws Interrupted if the work is to end.
void heartbeat();

}  // namespace maxmargin
