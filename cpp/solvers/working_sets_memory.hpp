// Buffers of WorkingSets, for the files that implement it.
#pragma once

#include "solvers/working_sets.hpp"

namespace maxmargin {

struct WorkingSets::Memory {
    std::unique_ptr<PlaneScratch> scratch;
    std::vector<double> values, before, change, gram;
    std::vector<size_t> order;
    std::vector<Span> spans, stretches;
    std::vector<int32_t> code;
    uint64_t random = 0;

    // xorshift64*: the order within a block needs no more.
    uint64_t next_random() {
        random ^= random >> 12;
        random ^= random << 25;
        random ^= random >> 27;
        return random * 0x2545F4914F6CDD1DULL;
    }
};

}  // namespace maxmargin
