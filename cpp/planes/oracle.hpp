// The search for planes as compiled passes ask for it, whoever answers: the core in threads, or a model written in Python.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "planes/linear_space.hpp"
#include "planes/plane_batch.hpp"

namespace maxmargin {

// Bound to a point w that the asking pass moves between the calls.
class Oracle {
  public:
    virtual ~Oracle() = default;
    // The plane found for each listed example at w as it is now, in their order; those of the truth are left out.
    virtual PlaneBatch search(std::span<const int64_t> ids) = 0;
    // Which examples may be asked for: 0 … n_examples() − 1.
    virtual int64_t n_examples() const = 0;
    // From now on search at scale · w, scale > 0: a pass that shrinks w at every visit need not write all of it.
    void set_scale(double scale) { scale_ = scale; }

  protected:
    double scale_ = 1.0;
};

class LinearOracle final : public Oracle {
  public:
    // What w points to outlives the oracle. Search::plain finds the best output whatever its loss.
    LinearOracle(std::shared_ptr<const LinearSpace> space, WeightsView w, Search kind, Workers workers)
        : space_(std::move(space)), w_(w), kind_(kind), workers_(std::move(workers)) {}

    PlaneBatch search(std::span<const int64_t> ids) override { return space_->separate(ids, w_, kind_, workers_, scale_); }
    int64_t n_examples() const override { return space_->n_examples(); }

  private:
    std::shared_ptr<const LinearSpace> space_;
    WeightsView w_;
    Search kind_;
    Workers workers_;
};

// Hands out planes that were found before, at most one of each example.
class FoundPlanes final : public Oracle {
  public:
    FoundPlanes(PlaneBatch planes, int64_t n_examples) : planes_(std::move(planes)), place_(n_examples, -1) {
        for (int64_t k = 0; k < planes_.size(); ++k) place_[planes_.examples[k]] = k;
    }

    PlaneBatch search(std::span<const int64_t> ids) override {
        PlaneBatch found;
        for (const int64_t example : ids)
            if (const int64_t k = place_[example]; k >= 0) found.add(planes_.examples[k], planes_.losses[k], planes_.code(k));
        return found;
    }
    int64_t n_examples() const override { return static_cast<int64_t>(place_.size()); }

  private:
    PlaneBatch planes_;
    std::vector<int64_t> place_;  // by example: its plane, or −1
};

// The k best outputs of each example, whatever their loss; a scale does not change which these are.
class KBestOracle final : public Oracle {
  public:
    // What w points to outlives the oracle. The structure has_k_best.
    KBestOracle(std::shared_ptr<const LinearSpace> space, const double* w, int64_t k) : space_(std::move(space)), w_(w), k_(k) {}

    PlaneBatch search(std::span<const int64_t> ids) override { return space_->k_best(ids, w_, k_); }
    int64_t n_examples() const override { return space_->n_examples(); }

  private:
    std::shared_ptr<const LinearSpace> space_;
    const double* w_;
    int64_t k_;
};

}  // namespace maxmargin
