#include "solvers/dual_choice.hpp"

#include <algorithm>
#include <limits>

#include "threads/parallel.hpp"

namespace maxmargin {

namespace {

class Ascent {
  public:
    Ascent(const PlaneSpace& space, std::span<const PlaneBatch* const> outputs, const DualPoint& point, int64_t start)
        : space_(space), outputs_(outputs), point_(point), scratch_(space.scratch()), chosen_(space.n_examples(), start),
          places_(space.n_examples() * outputs.size(), -1), u_(space.n_weights()) {
        for (size_t m = 0; m < outputs.size(); ++m)
            for (int64_t k = 0; k < outputs[m]->size(); ++k) places_[outputs[m]->examples[k] * outputs.size() + m] = k;
        for (int64_t j = 0; j < space.n_weights(); ++j) u_[j] = -point.w[j];
        for (int64_t i = 0; i < space.n_examples(); ++i) {
            if (i % examples_per_poll == 0) heartbeat();
            const int64_t k = place(i, start);
            if (k < 0) continue;
            const PlaneBatch& planes = *outputs[start];
            loss_ += step(i) * planes.losses[k];
            space.add(planes.examples[k], planes.code(k), planes.losses[k], step(i), u_.data(), *scratch_);
        }
    }

    void sweep() {
        // Many changes leave rounding behind: sums of all weights are made anew.
        square_ = along_ = 0.0;
        for (size_t j = 0; j < u_.size(); ++j) {
            square_ += u_[j] * u_[j];
            along_ += point_.w[j] * u_[j];
        }
        for (int64_t i = 0; i < space_.n_examples(); ++i) {
            if (i % examples_per_poll == 0) heartbeat();
            visit(i);
        }
    }

    std::vector<int64_t> result() { return std::move(chosen_); }

  private:
    static constexpr int64_t examples_per_poll = 64;

    int64_t place(int64_t i, int64_t m) const { return places_[i * static_cast<int64_t>(outputs_.size()) + m]; }
    // What one unit of the example's plane moves u by.
    double step(int64_t i) const { return point_.C * (point_.weight.empty() ? 1.0 : point_.weight[i]); }

    // Takes the output of an example that makes the quotient largest, the others' being what they are.
    void visit(int64_t i) {
        const double a = step(i);
        if (a == 0.0) return;
        const size_t n = write(i);
        if (n == 0) return;
        // What a change from no plane to each of them adds; the last stands for the truth, which has none.
        with_u_.assign(n + 1, 0.0), with_w_.assign(n + 1, 0.0), squares_.assign(n + 1, 0.0), with_now_.assign(n + 1, 0.0);
        space_.dots(scratch_->planes, {u_.data()}, *scratch_, with_u_.data());
        space_.dots(scratch_->planes, {point_.w}, *scratch_, with_w_.data());
        const size_t now = slot_[chosen_[i]];
        products_.resize(n);
        for (size_t p = 0; p < n; ++p) {
            space_.inner(scratch_->planes, p, *scratch_, products_.data());
            squares_[p] = products_[p];
            if (p == now) std::copy(products_.begin(), products_.end(), with_now_.begin());
        }
        int64_t best = chosen_[i];
        double most = -std::numeric_limits<double>::infinity();
        for (size_t m = 0; m < outputs_.size(); ++m) {
            const size_t p = slot_[m];
            const double distance2 = squares_[p] + squares_[now] - 2.0 * with_now_[p];
            const double square = square_ + 2.0 * a * (with_u_[p] - with_u_[now]) + a * a * distance2;
            const double slope = std::max(loss_ + a * (losses_[p] - losses_[now]) - point_.linear - along_ - a * (with_w_[p] - with_w_[now]), 0.0);
            const double quotient = slope * slope / std::max(square, 1e-300);
            if (quotient > most) most = quotient, best = static_cast<int64_t>(m);
        }
        if (slot_[best] != now) move(slot_[best], now, a);
        chosen_[i] = best;
    }

    // Writes out the example's planes; returns how many, and says in slot_ which of them each output is.
    size_t write(int64_t i) {
        scratch_->planes.clear();
        losses_.clear();
        slot_.assign(outputs_.size(), 0);
        for (size_t m = 0; m < outputs_.size(); ++m) {
            const int64_t k = place(i, static_cast<int64_t>(m));
            if (k < 0) continue;
            slot_[m] = losses_.size();
            losses_.push_back(outputs_[m]->losses[k]);
            space_.write(static_cast<int32_t>(i), outputs_[m]->code(k), outputs_[m]->losses[k], scratch_->planes, *scratch_);
        }
        const size_t n = losses_.size();
        for (size_t m = 0; m < outputs_.size(); ++m)
            if (place(i, static_cast<int64_t>(m)) < 0) slot_[m] = n;
        losses_.push_back(0.0);
        return n;
    }

    void move(size_t to, size_t from, double a) {
        const size_t n = losses_.size() - 1;
        square_ += 2.0 * a * (with_u_[to] - with_u_[from]) + a * a * (squares_[to] + squares_[from] - 2.0 * with_now_[to]);
        along_ += a * (with_w_[to] - with_w_[from]);
        loss_ += a * (losses_[to] - losses_[from]);
        products_.assign(n, 0.0);
        if (to < n) products_[to] += a;
        if (from < n) products_[from] -= a;
        space_.add(scratch_->planes, products_.data(), MovingWeights{u_.data()}, *scratch_);
        space_.forget(*scratch_);
    }

    const PlaneSpace& space_;
    std::span<const PlaneBatch* const> outputs_;
    const DualPoint& point_;
    std::unique_ptr<PlaneScratch> scratch_;
    std::vector<int64_t> chosen_;
    std::vector<int64_t> places_;  // where output m of example i is in outputs_[m], or −1: example × output
    std::vector<double> u_;
    double square_ = 0.0, along_ = 0.0, loss_ = 0.0;  // ‖u‖², w·u and C c
    // Of the example that is visited; by plane, then that of the truth.
    std::vector<size_t> slot_;
    std::vector<double> losses_, with_u_, with_w_, squares_, with_now_, products_;
};

}  // namespace

std::vector<int64_t> dual_choice(const PlaneSpace& space, std::span<const PlaneBatch* const> outputs, const DualPoint& point, int64_t start, int n_sweeps) {
    Ascent ascent(space, outputs, point, start);
    for (int k = 0; k < n_sweeps; ++k) ascent.sweep();
    return ascent.result();
}

}  // namespace maxmargin
