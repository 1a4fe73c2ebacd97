#include "solvers/dual_choice.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "threads/parallel.hpp"

namespace maxmargin {

namespace {
constexpr int64_t examples_per_poll = 64;
}

DualChoice::DualChoice(const PlaneSpace& space, std::vector<std::shared_ptr<const PlaneBatch>> outputs, std::span<const double> w, std::span<const double> sample_weight)
    : space_(space), outputs_(std::move(outputs)), w_(w), sample_weight_(sample_weight), scratch_(space.scratch()),
      examples_(space.n_examples()) {
    for (Example& example : examples_) example.slot.assign(outputs_.size(), -1);
    for (size_t m = 0; m < outputs_.size(); ++m) {
        const PlaneBatch& planes = *outputs_[m];
        for (int64_t k = 0; k < planes.size(); ++k) {
            if (k % examples_per_poll == 0) heartbeat();
            Example& example = examples_[planes.examples[k]];
            example.slot[m] = static_cast<int32_t>(example.losses.size());
            example.losses.push_back(planes.losses[k]);
            space.write(planes.examples[k], planes.code(k), planes.losses[k], example.parts, *scratch_);
        }
    }
    for (int64_t i = 0; i < space.n_examples(); ++i) {
        if (i % examples_per_poll == 0) heartbeat();
        Example& example = examples_[i];
        const size_t n = example.losses.size();
        std::replace(example.slot.begin(), example.slot.end(), -1, static_cast<int32_t>(n));
        example.losses.push_back(0.0);
        example.with_w.assign(n + 1, 0.0);
        example.gram.resize(n * n);
        space.dots(example.parts, {w_.data()}, *scratch_, example.with_w.data());
        for (size_t p = 0; p < n; ++p) space.inner(example.parts, p, *scratch_, example.gram.data() + p * n);
    }
}

std::vector<int64_t> DualChoice::choose(double C, double linear, int64_t start, int n_sweeps) {
    State state{.C = C, .linear = linear, .u = std::vector<double>(w_.size()), .chosen = std::vector<int64_t>(examples_.size(), start)};
    std::transform(w_.begin(), w_.end(), state.u.begin(), [](double value) { return -value; });
    const PlaneBatch& planes = *outputs_[start];
    for (int64_t k = 0; k < planes.size(); ++k) {
        if (k % examples_per_poll == 0) heartbeat();
        const double a = C * weight(planes.examples[k]);
        state.loss += a * planes.losses[k];
        space_.add(planes.examples[k], planes.code(k), planes.losses[k], a, state.u.data(), *scratch_);
    }
    for (int k = 0; k < n_sweeps; ++k) sweep(state);
    return std::move(state.chosen);
}

void DualChoice::sweep(State& state) {
    // Many changes leave rounding behind: sums of all weights are made anew.
    state.square = std::inner_product(state.u.begin(), state.u.end(), state.u.begin(), 0.0);
    state.along = std::inner_product(state.u.begin(), state.u.end(), w_.begin(), 0.0);
    for (int64_t i = 0; i < static_cast<int64_t>(examples_.size()); ++i) {
        if (i % examples_per_poll == 0) heartbeat();
        visit(i, state);
    }
}

// Takes the output of an example that makes the quotient largest, the others' being what they are.
void DualChoice::visit(int64_t i, State& state) {
    const Example& example = examples_[i];
    const double a = state.C * weight(i);
    if (a == 0.0 || example.n_planes() == 0) return;
    with_u_.assign(example.n_planes() + 1, 0.0);
    space_.dots(example.parts, {state.u.data()}, *scratch_, with_u_.data());
    const auto now = static_cast<size_t>(example.slot[state.chosen[i]]);
    int64_t best = state.chosen[i];
    double most = -std::numeric_limits<double>::infinity();
    for (size_t m = 0; m < outputs_.size(); ++m) {
        const auto p = static_cast<size_t>(example.slot[m]);
        const double square = state.square + 2.0 * a * (with_u_[p] - with_u_[now]) + a * a * example.distance2(p, now);
        const double loss = state.loss + a * (example.losses[p] - example.losses[now]);
        const double along = state.along + a * (example.with_w[p] - example.with_w[now]);
        const double slope = std::max(loss - state.linear - along, 0.0);
        const double quotient = slope * slope / std::max(square, 1e-300);
        if (quotient > most) most = quotient, best = static_cast<int64_t>(m);
    }
    const auto to = static_cast<size_t>(example.slot[best]);
    if (to != now) move(example, to, now, a, state);
    state.chosen[i] = best;
}

void DualChoice::move(const Example& example, size_t to, size_t from, double a, State& state) {
    state.square += 2.0 * a * (with_u_[to] - with_u_[from]) + a * a * example.distance2(to, from);
    state.along += a * (example.with_w[to] - example.with_w[from]);
    state.loss += a * (example.losses[to] - example.losses[from]);
    coefficients_.assign(example.n_planes() + 1, 0.0);
    coefficients_[to] += a;
    coefficients_[from] -= a;
    space_.add(example.parts, coefficients_.data(), MovingWeights{state.u.data()}, *scratch_);
    space_.forget(*scratch_);
}

}  // namespace maxmargin
