// How far a dual point is best scaled when its budgets change.
#pragma once

#include <algorithm>
#include <cmath>

namespace maxmargin {

// The s at which D(sα) = s · linear − ½ s² · quadratic is largest, 0 ≤ s ≤ most.
inline double best_multiple(double linear, double quadratic, double most) {
    if (linear <= 0.0) return 0.0;
    // Without a quadratic part every multiple of α gives w = 0, and the largest is the best.
    const double best = quadratic > 0.0 ? std::min(most, linear / quadratic) : most;
    return std::isfinite(best) ? best : 1.0;
}

}  // namespace maxmargin
