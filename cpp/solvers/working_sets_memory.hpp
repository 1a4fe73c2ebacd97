// Buffers of WorkingSets, for the files that implement it.
#pragma once

#include "solvers/working_sets.hpp"

namespace maxmargin {

struct WorkingSets::Memory {
    std::unique_ptr<PlaneScratch> scratch;
    std::vector<Code> codes;
    std::vector<double> losses, values, before, gram;
};

}  // namespace maxmargin
