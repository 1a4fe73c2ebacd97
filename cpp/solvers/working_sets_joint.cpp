// The planes of all working sets as one problem.
#include <algorithm>

#include "solvers/joint_blocks.hpp"
#include "solvers/working_sets.hpp"
#include "solvers/working_sets_memory.hpp"

namespace maxmargin {

namespace {
constexpr size_t blocks_per_heartbeat = 64;
}

class WorkingSets::Joint : public JointBlocks {
  public:
    explicit Joint(WorkingSets& sets);

    int64_t n_weights() const override { return sets_.space_->n_weights(); }
    void values(const double* w, double* out) override;
    void dots(size_t block, const double* vector, double* out) override {
        sets_.space_->dots(blocks_[block]->parts, {vector}, *sets_.memory_->scratch, out);
    }
    void add(size_t block, const double* coefficients, double* vector) override {
        sets_.space_->add(blocks_[block]->parts, coefficients, {vector}, *sets_.memory_->scratch);
    }
    void take(const std::vector<double>& taken) override;

  private:
    WorkingSets& sets_;
    std::vector<Block*> blocks_;
};

std::unique_ptr<JointBlocks> WorkingSets::joint() { return std::make_unique<Joint>(*this); }

WorkingSets::Joint::Joint(WorkingSets& sets) : sets_(sets) {
    for (std::vector<Block>& own : sets.blocks_) {
        heartbeat();
        for (Block& block : own) {
            if (block.size() == 0) continue;
            blocks_.push_back(&block);
            budgets.push_back(block.budget);
            for (size_t p = 0; p < block.size(); ++p) {
                losses.push_back(block.entries[p].loss);
                alpha.push_back(block.alpha[p]);
            }
            starts.push_back(losses.size());
        }
    }
}

void WorkingSets::Joint::values(const double* w, double* out) {
    for (size_t b = 0; b < blocks_.size(); ++b) {
        if (b % blocks_per_heartbeat == 0) heartbeat();
        dots(b, w, out + starts[b]);
        for (size_t p = starts[b]; p < starts[b + 1]; ++p) out[p] = losses[p] - out[p];
    }
}

void WorkingSets::Joint::take(const std::vector<double>& taken) {
    for (size_t b = 0; b < blocks_.size(); ++b) std::copy(taken.begin() + starts[b], taken.begin() + starts[b + 1], blocks_[b]->alpha.begin());
}

}  // namespace maxmargin
