// Counts elementary steps and looks for signals about every half millisecond of them.
#pragma once

#include <cstdint>

#include "threads/parallel.hpp"

namespace maxmargin {

class Pace {
   public:
    void work(int64_t steps) {
        done_ += steps;
        if (done_ < steps_between) return;
        done_ = 0;
        heartbeat();
    }

   private:
    static constexpr int64_t steps_between = 500'000;
    int64_t done_ = 0;
};

}  // namespace maxmargin
