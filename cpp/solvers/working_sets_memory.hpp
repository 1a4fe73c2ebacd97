// Buffers of WorkingSets, for the files that implement it.
#pragma once

#include "solvers/random.hpp"
#include "solvers/working_sets.hpp"

namespace maxmargin {

struct WorkingSets::Memory {
    Pool pool;  // of the blocks
    std::unique_ptr<PlaneScratch> scratch;
    std::vector<double> values, before, change, gram;
    std::vector<size_t> order;
    std::vector<Span> spans, stretches, all_spans, plane_spans;
    std::vector<int32_t> code;
    Random random{0};
    struct Found {
        std::vector<int32_t> code;
        double loss = 0.0;
        bool is_any = false;
    };
    std::vector<Found> found;                              // for each visit that waits: by the oracle, or by several threads
    std::vector<std::unique_ptr<PlaneScratch>> scratches;  // of these threads
};

// While it lives the scratch knows of all that happens to w; before and after it does not, and nothing is put off.
class KnownWeights {
  public:
    KnownWeights(const PlaneSpace& space, PlaneScratch& scratch) : space_(space), scratch_(scratch) { space_.forget(scratch_); }
    ~KnownWeights() { space_.forget(scratch_); }
    KnownWeights(const KnownWeights&) = delete;
    KnownWeights& operator=(const KnownWeights&) = delete;

  private:
    const PlaneSpace& space_;
    PlaneScratch& scratch_;
};

}  // namespace maxmargin
