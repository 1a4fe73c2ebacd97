#include "threads/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace maxmargin {

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto poll_interval = std::chrono::milliseconds(50);

// What the current thread works for: set while for_each_chunk runs on it.
struct Duty {
    const std::atomic<bool>* stop = nullptr;
    const std::function<bool()>* poll = nullptr;  // the calling thread only
};
thread_local Duty duty;
// By this thread, in whichever call: long work may be made of many short ones.
thread_local Clock::time_point last_poll;

}  // namespace

void heartbeat() {
    if (duty.stop && duty.stop->load(std::memory_order_relaxed)) throw Interrupted();
    if (!duty.poll || !*duty.poll) return;
    const auto now = Clock::now();
    if (now - last_poll < poll_interval) return;
    last_poll = now;
    if ((*duty.poll)()) throw Interrupted();
}

// Threads live for one call: they cost microseconds against passes of milliseconds, and a process that forks
// between calls inherits none.
void for_each_chunk(int64_t n_chunks, const Workers& workers, const std::function<void(int64_t, int)>& work) {
    std::atomic<int64_t> next{0};
    std::atomic<bool> stop{false};
    std::exception_ptr failure;
    std::mutex failure_lock;

    const auto run = [&](int thread) {
        const Duty outer = duty;
        duty = {&stop, thread == 0 ? &workers.poll : nullptr};
        while (!stop.load(std::memory_order_relaxed)) {
            const int64_t chunk = next.fetch_add(1);
            if (chunk >= n_chunks) break;
            try {
                work(chunk, thread);
                // What is done is not thrown away.
                if (next.load(std::memory_order_relaxed) < n_chunks) heartbeat();
            } catch (...) {
                const std::lock_guard guard(failure_lock);
                if (!failure) failure = std::current_exception();
                stop = true;
            }
        }
        duty = outer;
    };

    const int extra = static_cast<int>(std::min<int64_t>(std::max(workers.n_threads, 1), n_chunks)) - 1;
    std::vector<std::thread> threads;
    try {
        threads.reserve(extra);
        for (int t = 1; t <= extra; ++t) threads.emplace_back(run, t);
    } catch (const std::exception&) {
        // The system gives no more threads, or no memory for them: those that started do all the work.
    }
    run(0);
    for (auto& thread : threads) thread.join();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace maxmargin
