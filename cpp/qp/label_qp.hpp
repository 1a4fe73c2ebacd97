// The dual of one example whose planes differ in nothing but the wrong label (Crammer and Singer 2001, section 5).
//
//     max_α  Σ α_l b_l − ½ a ((Σ α)² + Σ α_l²) − ½ r (Σ α)²        α ≥ 0, Σ α ≤ budget
//
// At the optimum α_l = (b_l − θ)₊ / a: labels above a threshold carry mass, which is found by taking them in, the best first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace maxmargin {

struct LabelMass {
    int32_t label;
    double alpha;
};

struct LabelCandidate {
    int32_t label;
    double value;  // b_l
    double alpha;  // the solution
};

// Whether a label of this value may carry mass where the best one has value best.
inline double least_value(double best, double a, double budget, double ridge) {
    const double kappa = 1.0 + ridge / a;
    return std::max(0.0, std::max(best * kappa / (1.0 + kappa), best - a * budget));
}

// Requires a > 0, r ≥ 0, a candidate with value > 0; budget is infinite or r is 0. Candidates come back sorted.
inline void solve_labels(std::span<LabelCandidate> candidates, double a, double budget, double ridge) {
    std::sort(candidates.begin(), candidates.end(), [](const LabelCandidate& p, const LabelCandidate& q) { return p.value > q.value || (p.value == q.value && p.label < q.label); });
    const double kappa = 1.0 + ridge / a;
    double sum = 0.0, n = 0.0;
    const auto free_threshold = [&] { return kappa * sum / (1.0 + kappa * n); };
    const auto full_threshold = [&] { return (sum - a * budget) / n; };
    size_t used = 0;
    while (used < candidates.size() && (used == 0 || candidates[used].value > std::max(free_threshold(), full_threshold()))) {
        sum += candidates[used++].value;
        n += 1.0;
    }
    // Written so that nothing cancels where the budget is small against b / a.
    const bool is_full = full_threshold() > free_threshold();
    const double center = is_full ? sum / n : free_threshold(), share = is_full ? budget / n : 0.0;
    double total = 0.0;
    for (size_t k = 0; k < candidates.size(); ++k) {
        candidates[k].alpha = k < used ? std::max(0.0, share + (candidates[k].value - center) / a) : 0.0;
        total += candidates[k].alpha;
    }
    if (total > budget)
        for (LabelCandidate& candidate : candidates) candidate.alpha *= budget / total;
}

}  // namespace maxmargin
