#include "solvers/online_pass.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "qp/smo.hpp"

namespace maxmargin {

namespace {

constexpr int64_t visits_per_poll = 16;
// Below this scale the vector beside it is written anew, long before either leaves its range.
constexpr double smallest_scale = 1e-6;
// MIRA's small QP: its gap in units of its value for the best single plane, and the most steps.
constexpr double qp_tolerance = 1e-12;
constexpr int64_t max_qp_steps = 10000;
// Without C the constraints may contradict each other; this share of the largest ‖ψ‖² bounds α then.
constexpr double hard_ridge = 1e-9;

}  // namespace

OnlinePass::OnlinePass(std::shared_ptr<const PlaneSpace> space, MovingWeights w, std::vector<double> sample_weight, int64_t visits,
                       std::vector<int64_t> nonnegative)
    : space_(std::move(space)),
      scratch_(space_->scratch()),
      w_(w),
      sample_weight_(std::move(sample_weight)),
      visits_(visits),
      nonnegative_(std::move(nonnegative)) {}

// learn(found, s) moves w and returns what was seen. It polls for nothing: an interrupt comes between two visits.
template <class Learn>
OnlinePass::Seen OnlinePass::visit_all(std::span<const int64_t> order, Oracle& oracle, const Workers& workers, Learn&& learn) {
    Seen seen;
    const Workers alone{1, workers.poll};
    const auto n = static_cast<int64_t>(order.size());
    for_each_chunk((n + visits_per_poll - 1) / visits_per_poll, alone, [&](int64_t chunk, int) {
        for (int64_t v = chunk * visits_per_poll; v < std::min((chunk + 1) * visits_per_poll, n); ++v) {
            oracle.set_scale(scale_);
            const PlaneBatch found = oracle.search(order.subspan(v, 1));
            space_->check(found);
            // Codes mean nothing to another example, and a foreign oracle may answer anything.
            for (const int32_t example : found.examples)
                if (example != order[v]) throw std::invalid_argument("the oracle answered for another example than the one it was asked for.");
            const Seen one = learn(found, sample_weight_.empty() ? 1.0 : sample_weight_[order[v]]);
            seen.loss += one.loss;
            seen.updates += one.updates;
            ++visits_;
        }
    });
    return seen;
}

void OnlinePass::add(const PlaneBatch& found, int64_t p, double a, double* late) {
    PlaneParts& parts = scratch_->planes;
    parts.clear();
    space_->write(found.examples[p], found.code(p), found.losses[p], parts, *scratch_);
    space_->add(parts, &a, {w_.exact}, *scratch_);
    if (w_.rounded) space_->add(parts, &a, w_, *scratch_);
    const double lateness = a * static_cast<double>(visits_);
    if (late && visits_ > 0) space_->add(parts, &lateness, {late}, *scratch_);
}

void OnlinePass::value(const PlaneBatch& found) {
    codes_.clear();
    for (int64_t p = 0; p < found.size(); ++p) codes_.push_back(found.code(p));
    values_.resize(codes_.size());
    if (codes_.empty()) return;
    space_->dots(found.examples[0], codes_, found.losses, {w_.exact}, *scratch_, values_.data());
    for (size_t p = 0; p < codes_.size(); ++p) values_[p] = found.losses[p] - scale_ * values_[p];
}

OnlinePass::Seen OnlinePass::perceptron(std::span<const int64_t> order, Oracle& oracle, double* late, const Workers& workers) {
    return visit_all(order, oracle, workers, [&](const PlaneBatch& found, double s) {
        if (found.size() == 0) return Seen{};
        add(found, 0, s, late);
        return Seen{1, s * found.losses[0]};
    });
}

void OnlinePass::solve(const PlaneBatch& found, double C) {
    const size_t m = codes_.size();
    gram_.resize(m * m);
    for (size_t p = 0; p < m; ++p)
        space_->inner(found.examples[0], codes_[p], found.losses[p], codes_, found.losses, *scratch_, gram_.data() + p * m);
    alpha_.assign(m, 0.0);
    double largest = 0.0, best_gain = 0.0;
    for (size_t p = 0; p < m; ++p) {
        const double square = gram_[p * m + p];
        largest = std::max(largest, square);
        // No step changes what a plane with ψ = 0 asks for, which must not use up the budget.
        if (square > 0.0) best_gain = std::max(best_gain, values_[p] * std::max(0.0, values_[p]) / square);
        else values_[p] = 0.0;
    }
    if (best_gain == 0.0) return;
    if (m == 1) {
        alpha_[0] = std::min(values_[0] / gram_[0], C);
        return;
    }
    const double ridge = std::isinf(C) ? hard_ridge * largest : 0.0;
    for (double& entry : gram_) entry += ridge;
    smo(gram_.data(), m, m, values_.data(), alpha_.data(), C, qp_tolerance * best_gain, max_qp_steps, ridge);
}

OnlinePass::Seen OnlinePass::mira(std::span<const int64_t> order, Oracle& oracle, double C, double* late, const Workers& workers) {
    return visit_all(order, oracle, workers, [&](const PlaneBatch& found, double s) {
        if (found.size() == 0) return Seen{};
        value(found);
        // The first of the outputs found is the prediction, unless the truth stands before it.
        Seen seen{0, values_[0] >= found.losses[0] ? s * found.losses[0] : 0.0};
        solve(found, C);
        for (int64_t p = 0; p < found.size(); ++p)
            if (alpha_[p] > 0.0) {
                add(found, p, s * alpha_[p], late);
                seen.updates = 1;
            }
        return seen;
    });
}

OnlinePass::Seen OnlinePass::sgd(std::span<const int64_t> order, Oracle& oracle, const Descent& descent, const Workers& workers) {
    return visit_all(order, oracle, workers, [&](const PlaneBatch& found, double s) {
        value(found);
        const double eta = descent.eta0 / std::pow(1.0 + descent.eta0 * static_cast<double>(visits_) / descent.decay, 0.75);
        scale_ *= std::max(0.0, 1.0 - eta / descent.nC);
        if (scale_ < smallest_scale) fold();
        if (found.size() == 0) return Seen{};
        add(found, 0, s * eta / scale_, nullptr);
        // No other weight than those of the plane, which add left in the scratch, can have become negative.
        if (!nonnegative_.empty()) space_->clip(scratch_->planes, {w_.exact, w_.rounded, &nonnegative_});
        return Seen{1, s * std::max(0.0, values_[0])};
    });
}

void OnlinePass::fold() {
    if (scale_ == 1.0) return;
    const int64_t n_weights = space_->n_weights();
    for (int64_t j = 0; j < n_weights; ++j) {
        w_.exact[j] *= scale_;
        if (w_.rounded) w_.rounded[j] = static_cast<float>(w_.exact[j]);
    }
    scale_ = 1.0;
}

}  // namespace maxmargin
