// Which blocks of an example a plane belongs to, for the files that implement WorkingSets.
#pragma once

#include "solvers/working_sets.hpp"
#include "solvers/working_sets_memory.hpp"

namespace maxmargin {

template <class Use>
void WorkingSets::distribute(int64_t example, const Candidate& plane, Use&& use) {
    std::vector<Block>& own = blocks_[example];
    if (!is_parted(example)) {
        if (own.empty()) own.emplace_back(static_cast<int32_t>(example), budgets_[example], Span{}, memory_->pool);
        use(own.front(), plane);
        return;
    }
    make_room(example, plane.code);
    for (Block& block : own) {
        if (!is_touched(block)) continue;
        const double loss = space_->combine(block.example, plane.code, block.span, {}, memory_->code);
        use(block, Candidate{memory_->code, loss});
    }
}

}  // namespace maxmargin
