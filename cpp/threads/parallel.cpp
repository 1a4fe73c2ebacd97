#include "threads/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace maxmargin {

namespace {
using Clock = std::chrono::steady_clock;
constexpr auto poll_interval = std::chrono::milliseconds(50);
}  // namespace

// Threads live for one call: they cost microseconds against passes of milliseconds, and a process that forks
// between calls inherits none.
void for_each_chunk(int64_t n_chunks, const Workers& workers, const std::function<void(int64_t, int)>& work) {
    std::atomic<int64_t> next{0};
    std::atomic<bool> stop{false};
    std::exception_ptr failure;
    std::mutex failure_lock;

    const auto run = [&](int thread) {
        auto last_poll = Clock::now();
        while (!stop.load(std::memory_order_relaxed)) {
            const int64_t chunk = next.fetch_add(1);
            if (chunk >= n_chunks) return;
            try {
                work(chunk, thread);
                if (thread == 0 && workers.poll && Clock::now() - last_poll > poll_interval) {
                    last_poll = Clock::now();
                    if (workers.poll()) throw Interrupted();
                }
            } catch (...) {
                const std::lock_guard guard(failure_lock);
                if (!failure) failure = std::current_exception();
                stop = true;
            }
        }
    };

    const int extra = static_cast<int>(std::min<int64_t>(std::max(workers.n_threads, 1), n_chunks)) - 1;
    std::vector<std::thread> threads;
    for (int t = 1; t <= extra; ++t) threads.emplace_back(run, t);
    run(0);
    for (auto& thread : threads) thread.join();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace maxmargin
