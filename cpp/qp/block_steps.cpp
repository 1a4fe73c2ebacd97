#include "qp/block_steps.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "qp/unspent.hpp"

namespace maxmargin {

namespace {
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::size_t zero_plane = std::numeric_limits<std::size_t>::max();

struct Pair {
    std::size_t up = zero_plane, down = zero_plane;
    double highest = 0.0, lowest = infinity;
    double violation() const { return highest - lowest; }
};

Pair most_violating(std::size_t n, const double* values, const double* alpha, double zero_mass) {
    Pair pair;
    if (zero_mass > 0.0) pair.lowest = 0.0;
    for (std::size_t k = 0; k < n; ++k) {
        if (values[k] > pair.highest) {
            pair.highest = values[k];
            pair.up = k;
        }
        if (alpha[k] > 0.0 && values[k] < pair.lowest) {
            pair.lowest = values[k];
            pair.down = k;
        }
    }
    return pair;
}

double left_of(double budget, std::size_t n, const double* alpha) {
    return unspent(budget - std::accumulate(alpha, alpha + n, 0.0), n, budget);
}
}  // namespace

double pair_violation(std::size_t n, const double* values, const double* alpha, double budget) {
    return most_violating(n, values, alpha, left_of(budget, n, alpha)).violation();
}

std::int64_t ascend_pairs(const double* gram, std::size_t n, double* values, double* alpha, double budget, double tolerance,
                          std::int64_t max_steps) {
    double zero_mass = left_of(budget, n, alpha);
    for (std::int64_t steps = 0;; ++steps) {
        const Pair pair = most_violating(n, values, alpha, zero_mass);
        if (!(pair.violation() > tolerance) || steps == max_steps) return steps;
        const auto row = [&](std::size_t plane) { return gram + plane * n; };
        const bool from_zero = pair.down == zero_plane, to_zero = pair.up == zero_plane;
        double curvature = 0.0;
        if (!to_zero) curvature += row(pair.up)[pair.up];
        if (!from_zero) curvature += row(pair.down)[pair.down];
        if (!to_zero && !from_zero) curvature -= 2.0 * row(pair.up)[pair.down];
        double& given = from_zero ? zero_mass : alpha[pair.down];
        // Equal planes: the denominator vanishes and the whole mass moves.
        const double step = pair.violation() >= given * curvature ? given : pair.violation() / curvature;
        (to_zero ? zero_mass : alpha[pair.up]) += step;
        given = step == given ? 0.0 : given - step;
        for (std::size_t k = 0; k < n; ++k) {
            if (!to_zero) values[k] -= step * row(pair.up)[k];
            if (!from_zero) values[k] += step * row(pair.down)[k];
        }
    }
}

double coordinate_violation(std::size_t n, const double* values, const double* alpha) {
    double largest = 0.0;
    for (std::size_t k = 0; k < n; ++k) largest = std::max(largest, alpha[k] > 0.0 ? std::abs(values[k]) : values[k]);
    return largest;
}

void ascend_coordinates(const double* gram, std::size_t n, std::span<const std::size_t> order, double* values, double* alpha) {
    for (const std::size_t p : order) {
        const double* row = gram + p * n;
        const double after = std::max(alpha[p] + values[p] / row[p], 0.0), change = after - alpha[p];
        if (change == 0.0) continue;
        alpha[p] = after;
        for (std::size_t k = 0; k < n; ++k) values[k] -= change * row[k];
    }
}

}  // namespace maxmargin
