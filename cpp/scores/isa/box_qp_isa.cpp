// Pairs of variables in a box. Compiled once per instruction set, under the rules of kernels_isa.cpp.
#include "scores/isa/box_qp.hpp"

#include "scores/isa/lanes.hpp"

namespace maxmargin::MAXMARGIN_ISA {

namespace {

using L = Lanes<double>;
static_assert(box_padding % L::width == 0);

// Of a second variable's curvature this share is left at least when the first follows it: less is rounding, or no kernel.
constexpr double least_left = 1e-10;

struct Best {
    double gain;
    int64_t at;
};

double largest_of(L lanes) {
    double numbers[L::width];
    lanes.store(numbers);
    double largest = numbers[0];
    for (int k = 1; k < L::width; ++k) largest = numbers[k] > largest ? numbers[k] : largest;
    return largest;
}

// Where none is the largest (NaN, or all below 0), the last.
Best best_of(const double* gains, int64_t n, L largest) {
    const double gain = largest_of(largest);
    int64_t at = 0;
    while (at < n - 1 && gains[at] != gain) ++at;
    return {gains[at], at};
}

double clipped(double x, double upper) { return x < 0.0 ? 0.0 : x > upper ? upper : x; }

// Two variables: how far they go, and what that gains.
struct Move {
    double first, second, gain;
};

class Box {
  public:
    explicit Box(const BoxQp& qp) : qp_(qp), inverse_(qp.memory), gains_(qp.memory + qp.n), beside_(qp.memory + 2 * qp.n) {
        for (int64_t k = 0; k < qp.n; ++k) inverse_[k] = 1.0 / qp.curvature[k];
    }

    BoxSteps solve() {
        BoxSteps result;
        Best first = move_values(nullptr, 0.0, nullptr, 0.0);
        const double least = qp_.least_share * first.gain;
        while (first.gain > least && result.steps < qp_.most_steps) {
            const Best second = best_beside(first.at);
            const Move move = second.gain > 0.0 ? best_move(first.at, second.at) : alone(first.at);
            // Rounding leaves nothing to gain.
            if (!(move.gain > 0.0)) break;
            qp_.alpha[first.at] = clipped(qp_.alpha[first.at] + move.first, qp_.upper[first.at]);
            qp_.alpha[second.at] = clipped(qp_.alpha[second.at] + move.second, qp_.upper[second.at]);
            first = move_values(row(first.at), move.first, row(second.at), move.second);
            result.gain += move.gain;
            ++result.steps;
        }
        return result;
    }

  private:
    const double* row(int64_t k) const { return qp_.gram + k * qp_.n; }

    // What a step of a variable gains by itself, for all of them, once their values fell by a row or two.
    Best move_values(const double* one, double by_one, const double* other, double by_other) {
        const L zero = L::all(0.0), half = L::all(0.5), step = L::all(by_one), other_step = L::all(by_other);
        L largest = zero;
        for (int64_t k = 0; k < qp_.n; k += L::width) {
            L value = L::load(qp_.values + k);
            if (one) {
                value = value - (step * L::load(one + k) + other_step * L::load(other + k));
                value.store(qp_.values + k);
            }
            const L alpha = L::load(qp_.alpha + k);
            const L change = (alpha + value * L::load(inverse_ + k)).at_least(zero).at_most(L::load(qp_.upper + k)) - alpha;
            const L gain = change * (value - half * change * L::load(qp_.curvature + k));
            gain.store(gains_ + k);
            largest = largest.at_least(gain);
        }
        return best_of(gains_, qp_.n, largest);
    }

    // The variable that gains most if the first one goes where it wants to, and follows.
    Best best_beside(int64_t first) {
        const L zero = L::all(0.0), half = L::all(0.5), left = L::all(least_left);
        const L wanted = L::all(qp_.values[first] * inverse_[first]), inverse = L::all(inverse_[first]);
        const double* products = row(first);
        L largest = zero;
        for (int64_t k = 0; k < qp_.n; k += L::width) {
            const L product = L::load(products + k), own = L::load(qp_.curvature + k), alpha = L::load(qp_.alpha + k);
            const L value = L::load(qp_.values + k) - product * wanted;
            const L curvature = (own - product * product * inverse).at_least(left * own);
            const L change = (alpha + value / curvature).at_least(zero).at_most(L::load(qp_.upper + k)) - alpha;
            const L gain = change * (value - half * change * curvature);
            gain.store(beside_ + k);
            largest = largest.at_least(k <= first && first < k + L::width ? zero : gain);
        }
        // The vector of the first itself: one number after the other.
        beside_[first] = 0.0;
        double most = largest_of(largest);
        const int64_t begin = first / L::width * L::width;
        for (int64_t k = begin; k < begin + L::width; ++k) most = beside_[k] > most ? beside_[k] : most;
        return best_of(beside_, qp_.n, L::all(most));
    }

    double change_of(int64_t k, double value) const {
        return clipped(qp_.alpha[k] + value * inverse_[k], qp_.upper[k]) - qp_.alpha[k];
    }
    Move valued(int64_t i, int64_t j, double first, double second) const {
        const double gain = first * (qp_.values[i] - 0.5 * first * qp_.curvature[i]) + second * (qp_.values[j] - 0.5 * second * qp_.curvature[j]) -
                            first * second * row(i)[j];
        return {first, second, gain};
    }
    Move alone(int64_t i) const { return valued(i, i, change_of(i, qp_.values[i]), 0.0); }

    // The best point of the rectangle: where both derivatives are 0, or on a side, where one of the two is at a bound.
    Move best_move(int64_t i, int64_t j) const {
        const double product = row(i)[j], left = qp_.curvature[j] - product * product * inverse_[i];
        Move best = alone(i);
        const auto consider = [&](const Move& move) { best = move.gain > best.gain ? move : best; };
        if (left > least_left * qp_.curvature[j]) {
            const double second = (qp_.values[j] - product * qp_.values[i] * inverse_[i]) / left;
            const double first = (qp_.values[i] - product * second) * inverse_[i];
            const bool is_inside = is_within(i, first) && is_within(j, second);
            if (is_inside) return valued(i, j, first, second);
        }
        const double ends[2][2] = {{-qp_.alpha[i], qp_.upper[i] - qp_.alpha[i]}, {-qp_.alpha[j], qp_.upper[j] - qp_.alpha[j]}};
        for (const double end : ends[0])
            if (is_finite(end)) consider(valued(i, j, end, change_of(j, qp_.values[j] - product * end)));
        for (const double end : ends[1])
            if (is_finite(end)) consider(valued(i, j, change_of(i, qp_.values[i] - product * end), end));
        return best;
    }
    bool is_within(int64_t k, double change) const { return qp_.alpha[k] + change >= 0.0 && qp_.alpha[k] + change <= qp_.upper[k]; }

    static bool is_finite(double x) { return x - x == 0.0; }

    const BoxQp& qp_;
    double *inverse_, *gains_, *beside_;
};

}  // namespace

BoxSteps solve_box(const BoxQp& qp) { return Box(qp).solve(); }

// A block's share of the gap is C ξ − α v for the hinge, C ξ² − α v + α² / 4C for the squared hinge, ξ = max(v, 0).
BoxGap value_box(const BoxRows& rows) {
    const L zero = L::all(0.0), half = L::all(0.5), tolerance = L::all(rows.tolerance);
    L total = zero, largest = zero;
    for (int64_t k = 0; k < rows.n; k += L::width) {
        const L alpha = L::load(rows.alpha + k), budget = L::load(rows.budget + k), ridge = L::load(rows.ridge + k);
        const L value = L::load(rows.loss + k) - L::load(rows.y + k) * L::load(rows.scores + k), slope = value - ridge * alpha;
        const L change = (alpha + slope * L::load(rows.inverse + k)).at_least(zero).at_most(L::load(rows.upper + k)) - alpha;
        const L gain = change * (slope - half * change * L::load(rows.curvature + k));
        gain.if_positive(gain, slope.at_most(zero - slope)).store(rows.worth + k);
        const L slack = value.at_least(zero);
        const L gap = rows.is_squared ? budget * slack * slack - alpha * value + half * ridge * alpha * alpha : budget * slack - alpha * value;
        total = total + gap.at_least(zero);
        largest = largest.at_least(gap - tolerance * budget);
    }
    double numbers[L::width], sum = 0.0;
    total.store(numbers);
    for (const double number : numbers) sum += number;
    return {sum, largest_of(largest)};
}

}  // namespace maxmargin::MAXMARGIN_ISA
