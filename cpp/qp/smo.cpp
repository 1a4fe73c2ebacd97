#include "qp/smo.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>

#include "qp/unspent.hpp"
#include "threads/parallel.hpp"

namespace maxmargin {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::size_t kZeroPlane = std::numeric_limits<std::size_t>::max();
constexpr std::size_t kPlanesOnStack = 64;

// Blocks of a handful of planes are solved millions of times: an allocation would cost more than the solve.
template <typename T, std::size_t OnStack>
class Scratch {
public:
    explicit Scratch(std::size_t size) {
        if (size > OnStack) heap_ = std::make_unique_for_overwrite<T[]>(size);
        data_ = heap_ ? heap_.get() : stack_;
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    T* get() { return data_; }

private:
    T stack_[OnStack];
    std::unique_ptr<T[]> heap_;
    T* data_;
};

struct StoredRows {
    const double* gram;
    std::size_t stride;
    const double* operator()(std::size_t k) const { return gram + k * stride; }
};

struct MadeRows {
    GramRows* rows;
    const double* operator()(std::size_t k) const { return rows->row(k); }
};

template <class Rows>
struct Problem {
    Rows row;
    std::size_t n;
    const double* diagonal;
    double* values;
    double* alpha;
    double zero_mass;  // on the zero plane: budget − Σα, or infinite
    double ridge;
};

struct Move {
    double gap;
    std::size_t up = kZeroPlane;    // the plane of largest value
    std::size_t down = kZeroPlane;  // gives mass to it
    double step = 0.0;
};

// Second-order choice of the pair: the mass goes to the plane of largest value, from where that gains the most.
// Unlike LIBSVM's, the gain counts that a plane cannot give more than it has.
template <class Rows>
Move best_move(const Problem<Rows>& problem) {
    Move move;
    double top = 0.0;
    for (std::size_t k = 0; k < problem.n; ++k) {
        if (problem.values[k] > top) {
            top = problem.values[k];
            move.up = k;
        }
    }

    double weighted_violation = 0.0, alpha_sum = 0.0, best_gain = 0.0;
    const auto consider = [&](std::size_t k, double mass, double violation, double curvature) {
        // Equal planes: the curvature vanishes and the whole mass may move.
        const double step = violation >= mass * curvature ? mass : violation / curvature;
        const double gain = step * (violation - 0.5 * step * curvature);
        if (gain > best_gain) {
            best_gain = gain;
            move.down = k;
            move.step = step;
        }
    };
    const bool to_zero_plane = move.up == kZeroPlane;
    const double* up_row = to_zero_plane ? nullptr : problem.row(move.up);
    const double up_square = to_zero_plane ? 0.0 : problem.diagonal[move.up];
    for (std::size_t k = 0; k < problem.n; ++k) {
        const double mass = problem.alpha[k];
        if (mass <= 0.0) continue;
        const double violation = top - problem.values[k];
        alpha_sum += mass;
        weighted_violation += mass * violation;
        const double cross = to_zero_plane ? 0.0 : up_row[k];
        consider(k, mass, violation, up_square + problem.diagonal[k] - 2.0 * cross);
    }
    if (problem.zero_mass > 0.0 && !to_zero_plane) {
        // The ridge bounds the curvature from below where the mass is infinite, so that no step is.
        consider(kZeroPlane, problem.zero_mass, top, std::max(up_square, problem.ridge));
    }

    if (problem.zero_mass < kInfinity) {
        move.gap = weighted_violation + problem.zero_mass * top;
    } else {
        double largest = -problem.ridge * alpha_sum;
        for (std::size_t k = 0; k < problem.n; ++k) largest = std::max(largest, problem.values[k]);
        move.gap = weighted_violation + alpha_sum * (largest - top) + 0.5 * largest * largest / problem.ridge;
    }
    return move;
}

// False if the step is lost in rounding.
template <class Rows>
bool apply(Problem<Rows>& problem, const Move& move) {
    double& up_mass = move.up == kZeroPlane ? problem.zero_mass : problem.alpha[move.up];
    double& down_mass = move.down == kZeroPlane ? problem.zero_mass : problem.alpha[move.down];
    const double step = move.step;
    if (move.up == move.down || (up_mass + step == up_mass && down_mass - step == down_mass)) return false;
    up_mass += step;
    down_mass -= step;

    double* values = problem.values;
    if (move.down == kZeroPlane) {
        const double* up_row = problem.row(move.up);
        for (std::size_t j = 0; j < problem.n; ++j) values[j] -= step * up_row[j];
    } else if (move.up == kZeroPlane) {
        const double* down_row = problem.row(move.down);
        for (std::size_t j = 0; j < problem.n; ++j) values[j] += step * down_row[j];
    } else {
        const double* up_row = problem.row(move.up);
        const double* down_row = problem.row(move.down);
        for (std::size_t j = 0; j < problem.n; ++j) values[j] -= step * (up_row[j] - down_row[j]);
    }
    return true;
}

double dot(const double* a, const double* b, std::size_t n) {
    double sum[4] = {0.0, 0.0, 0.0, 0.0};
    std::size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        for (std::size_t lane = 0; lane < 4; ++lane) sum[lane] += a[i + lane] * b[i + lane];
    }
    for (; i < n; ++i) sum[0] += a[i] * b[i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

// Solves H x = b in place: H is the lower triangle of an m × m matrix, overwritten by its Cholesky factor, b by x.
// A pivot that rounding made negative gives x_i = 0.
void solve_positive_definite(double* h, std::size_t m, double* b) {
    for (std::size_t i = 0; i < m; ++i) {
        double* row_i = h + i * m;
        for (std::size_t j = 0; j < i; ++j) {
            const double* row_j = h + j * m;
            row_i[j] = (row_i[j] - dot(row_i, row_j, j)) / row_j[j];
        }
        const double pivot = row_i[i] - dot(row_i, row_i, i);
        row_i[i] = pivot > 0.0 ? std::sqrt(pivot) : kInfinity;
        b[i] = (b[i] - dot(row_i, b, i)) / row_i[i];
    }
    for (std::size_t i = m; i-- > 0;) {
        const double* row_i = h + i * m;
        b[i] /= row_i[i];
        for (std::size_t j = 0; j < i; ++j) b[j] -= row_i[j] * b[i];
    }
}

// One Newton step on the planes that carry mass, cut short where the first of them runs empty; returns whether one did.
// `reference` gives or takes what the others take or give, so that the masses keep their sum.
//
// The system is that of the differences to the reference. Its diagonal is raised by what rounding in G may have taken
// from it; the exact line search then undoes the shortening along directions of almost no curvature.
template <class Rows>
bool newton_step(Problem<Rows>& problem, const std::size_t* members, std::size_t m, std::size_t reference, double* system,
                 double* direction, double* change) {
    constexpr double kRounding = 1e-14;
    const bool to_zero_plane = reference == kZeroPlane;
    const double* reference_row = to_zero_plane ? nullptr : problem.row(reference);
    const double reference_square = to_zero_plane ? 0.0 : problem.diagonal[reference];
    const double reference_value = to_zero_plane ? 0.0 : problem.values[reference];
    for (std::size_t i = 0; i < m; ++i) {
        const std::size_t k = members[i];
        const double* row = problem.row(k);
        double* h = system + i * m;
        if (to_zero_plane) {
            for (std::size_t j = 0; j <= i; ++j) h[j] = row[members[j]];
        } else {
            const double offset = reference_square - reference_row[k];
            for (std::size_t j = 0; j <= i; ++j) h[j] = (row[members[j]] - reference_row[members[j]]) + offset;
        }
        h[i] += kRounding * (problem.diagonal[k] + reference_square);
        direction[i] = problem.values[k] - reference_value;
    }
    solve_positive_definite(system, m, direction);

    double total = 0.0;
    for (std::size_t i = 0; i < m; ++i) total += direction[i];
    std::fill_n(change, problem.n, 0.0);
    for (std::size_t i = 0; i < m; ++i) {
        const double* row = problem.row(members[i]);
        for (std::size_t j = 0; j < problem.n; ++j) change[j] += direction[i] * row[j];
    }
    if (!to_zero_plane) {
        for (std::size_t j = 0; j < problem.n; ++j) change[j] -= total * reference_row[j];
    }

    double slope = 0.0, curvature = 0.0;
    for (std::size_t i = 0; i < m; ++i) {
        slope += direction[i] * (problem.values[members[i]] - reference_value);
        curvature += direction[i] * (change[members[i]] - (to_zero_plane ? 0.0 : change[reference]));
    }
    if (!(slope > 0.0)) return false;
    double step = curvature > 0.0 ? slope / curvature : kInfinity;
    double& reference_mass = to_zero_plane ? problem.zero_mass : problem.alpha[reference];
    bool runs_empty = false;
    if (total > 0.0 && step * total >= reference_mass) {
        step = reference_mass / total;
        runs_empty = true;
    }
    for (std::size_t i = 0; i < m; ++i) {
        const double mass = problem.alpha[members[i]];
        if (direction[i] < 0.0 && step * -direction[i] >= mass) {
            step = mass / -direction[i];
            runs_empty = true;
        }
    }
    if (!(step < kInfinity)) return false;

    // What ends within rounding of zero is the plane that stopped the step.
    const auto moved = [](double mass, double by) { return mass + by <= 1e-15 * mass ? 0.0 : mass + by; };
    for (std::size_t i = 0; i < m; ++i) {
        problem.alpha[members[i]] = moved(problem.alpha[members[i]], step * direction[i]);
    }
    if (reference_mass < kInfinity) reference_mass = moved(reference_mass, -step * total);
    for (std::size_t j = 0; j < problem.n; ++j) problem.values[j] -= step * change[j];
    return runs_empty;
}

// Newton steps until one ends inside: then D is maximal over the planes that still carry mass. Pair moves alone
// crawl when planes are nearly collinear, as the late cuts of a training are; they only have to find these planes.
template <class Rows>
std::int64_t optimise_carriers(Problem<Rows>& problem) {
    const std::size_t n = problem.n;
    const auto carriers = static_cast<std::size_t>(
        std::count_if(problem.alpha, problem.alpha + n, [](double mass) { return mass > 0.0; }));
    Scratch<double, kPlanesOnStack * kPlanesOnStack> system(carriers * carriers);
    Scratch<double, 2 * kPlanesOnStack> vectors(2 * n);
    Scratch<std::size_t, kPlanesOnStack> members(n);

    std::int64_t steps = 0;
    for (bool runs_empty = true; runs_empty; ++steps) {
        std::size_t reference = kZeroPlane;
        if (problem.zero_mass <= 0.0) {
            reference = static_cast<std::size_t>(std::max_element(problem.alpha, problem.alpha + n) - problem.alpha);
        }
        std::size_t m = 0;
        for (std::size_t k = 0; k < n; ++k) {
            if (problem.alpha[k] > 0.0 && k != reference) members.get()[m++] = k;
        }
        if (m == 0) break;
        runs_empty = newton_step(problem, members.get(), m, reference, system.get(), vectors.get(), vectors.get() + n);
    }
    return steps;
}

template <class Rows>
SmoResult solve(Problem<Rows>& problem, double tolerance, std::int64_t max_steps) {
    // Few enough that a solve which needs Newton steps soon gets them, enough that one which does not never pays.
    const std::int64_t pairs_per_round = 8 + static_cast<std::int64_t>(problem.n / 8);
    // Gaps need not fall in every round, but one that has not for so long is made of rounding errors.
    constexpr int kPatience = 30;
    double best_gap = kInfinity;
    int rounds_without_progress = 0;
    std::int64_t steps = 0;
    Move move = best_move(problem);
    while (move.gap > tolerance && steps < max_steps) {
        const std::int64_t round_end = std::min(max_steps, steps + pairs_per_round);
        bool moved = true;
        while (move.gap > tolerance && steps < round_end && (moved = apply(problem, move))) {
            ++steps;
            move = best_move(problem);
        }
        if (move.gap <= tolerance || steps >= max_steps) break;
        heartbeat();
        steps += optimise_carriers(problem);
        move = best_move(problem);
        if (move.gap < 0.99 * best_gap) {
            best_gap = move.gap;
            rounds_without_progress = 0;
        } else if (!moved || ++rounds_without_progress == kPatience) {
            break;
        }
    }
    return {move.gap, steps};
}

double sum_of(const double* numbers, std::size_t n) { return std::accumulate(numbers, numbers + n, 0.0); }

}  // namespace

SmoResult smo(const double* gram, std::size_t stride, std::size_t n, double* values, double* alpha, double budget,
              double tolerance, std::int64_t max_steps, double ridge) {
    if (budget == kInfinity && !(ridge > 0.0)) {
        throw std::invalid_argument("smo: an infinite budget needs the ridge 1/(2C) that was added to the Gram matrix");
    }
    Scratch<double, kPlanesOnStack> diagonal(n);
    for (std::size_t k = 0; k < n; ++k) diagonal.get()[k] = gram[k * stride + k];
    double left = budget - sum_of(alpha, n);
    if (budget < kInfinity) left = unspent(left, n, budget);
    Problem<StoredRows> problem{{gram, stride}, n, diagonal.get(), values, alpha, left, ridge};
    return solve(problem, tolerance, max_steps);
}

SmoResult smo(GramRows& gram, const double* diagonal, std::size_t n, double* values, double* alpha, double budget,
              double tolerance, std::int64_t max_steps) {
    const double left = unspent(budget - sum_of(alpha, n), n, budget);
    Problem<MadeRows> problem{{&gram}, n, diagonal, values, alpha, left, 0.0};
    return solve(problem, tolerance, max_steps);
}

}  // namespace maxmargin
