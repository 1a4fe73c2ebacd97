#include "planes/kernel_space.hpp"

#include <algorithm>
#include <vector>

#include "planes/linear_scratch.hpp"

namespace maxmargin {

namespace {
// So many rows are put off at most: the more there are, the longer takes it to score others meanwhile.
constexpr size_t most_put_off = 128;
}  // namespace

struct KernelSpace::PutOff final : LinearSpace::Scratch {
    std::vector<int64_t> moved_rows, different_rows;
    std::vector<size_t> starts{0};  // of the changes of each, by label
    std::vector<LabelSum> changes;
    std::vector<double> by_row;

    std::span<const LabelSum> changes_of(size_t k) const { return {changes.data() + starts[k], starts[k + 1] - starts[k]}; }
    void clear() {
        moved_rows.clear();
        changes.clear();
        starts.assign(1, 0);
    }
};

std::unique_ptr<PlaneScratch> KernelSpace::scratch() const { return std::make_unique<PutOff>(); }

void KernelSpace::dots(const PlaneParts& planes, WeightsView w, PlaneScratch& scratch, double* out, int64_t next_row, bool all_rows) const {
    auto& memory = static_cast<PutOff&>(scratch);
    if (memory.moved_rows.empty()) {
        LinearSpace::dots(planes, w, scratch, out, next_row, all_rows);
        return;
    }
    const auto width = static_cast<size_t>(stride());
    const std::span<const int64_t> rows{planes.rows.data(), all_rows ? planes.rows.size() : planes.n_used_rows};
    std::vector<double>& scores = memory.scores64;
    scores.resize(rows.size() * width);
    for (size_t slot = 0; slot < rows.size(); ++slot) {
        double* const of_row = scores.data() + slot * width;
        std::copy_n(w.exact + rows[slot] * stride(), width, of_row);
        multiply_rows(rows[slot], memory.moved_rows, memory);
        for (size_t k = 0; k < memory.moved_rows.size(); ++k)
            for (const Scratch::LabelSum& change : memory.changes_of(k)) of_row[change.label] += memory.products[k] * change.coefficient;
    }
    sum_terms(planes, w.exact, [&](const NodeTerm& term) { return scores[static_cast<size_t>(term.slot) * width + term.label]; }, out);
}

void KernelSpace::inner(const PlaneParts& planes, size_t plane, PlaneScratch& scratch, double* out) const {
    inner_by_rows(planes, plane, static_cast<Scratch&>(scratch), out);
}

void KernelSpace::multiply_rows(int64_t row, std::span<const int64_t> rows, Scratch& memory) const {
    memory.products.resize(rows.size());
    columns_->values(row, rows, memory.products.data());
}

void KernelSpace::add_rows(const PlaneParts& planes, Scratch& memory, MovingWeights w) const {
    auto& put_off = static_cast<PutOff&>(memory);
    for (size_t slot = 0; slot < planes.rows.size(); ++slot) {
        const std::span<const Scratch::LabelSum> sums = memory.sums_of(slot);
        if (std::all_of(sums.begin(), sums.end(), [](const Scratch::LabelSum& sum) { return sum.coefficient == 0.0; })) continue;
        put_off.moved_rows.push_back(planes.rows[slot]);
        put_off.changes.insert(put_off.changes.end(), sums.begin(), sums.end());
        put_off.starts.push_back(put_off.changes.size());
        if (put_off.moved_rows.size() >= most_put_off) settle(w, memory);
    }
}

void KernelSpace::settle(MovingWeights w, PlaneScratch& scratch) const {
    auto& memory = static_cast<PutOff&>(scratch);
    if (memory.moved_rows.empty()) return;
    const auto width = static_cast<size_t>(stride());
    std::vector<int64_t>& rows = memory.different_rows;
    rows.clear();
    memory.by_row.assign(memory.moved_rows.size() * width, 0.0);
    for (size_t k = 0; k < memory.moved_rows.size(); ++k) {
        const auto place = static_cast<size_t>(std::find(rows.begin(), rows.end(), memory.moved_rows[k]) - rows.begin());
        if (place == rows.size()) rows.push_back(memory.moved_rows[k]);
        for (const Scratch::LabelSum& change : memory.changes_of(k)) memory.by_row[place * width + change.label] += change.coefficient;
    }
    columns_->prepare(rows);
    columns_->add(memory.by_row, stride(), w.exact);
    memory.clear();
}

void KernelSpace::forget(PlaneScratch& scratch) const {
    LinearSpace::forget(scratch);
    static_cast<PutOff&>(scratch).clear();
}

}  // namespace maxmargin
