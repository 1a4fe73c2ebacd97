#include "solvers/proximal_step.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "threads/parallel.hpp"

namespace maxmargin {

namespace {
constexpr size_t blocks_per_heartbeat = 1024;
}

ProximalStep::ProximalStep(std::unique_ptr<JointBlocks> blocks, bool squared)
    : blocks_(std::move(blocks)),
      squared_(squared),
      centre_(std::move(blocks_->alpha)),
      alpha_(centre_),
      values_(blocks_->n_planes()),
      shares_(blocks_->n_blocks(), -1.0) {
    for (size_t b = 0; b < blocks_->n_blocks(); ++b) most_rows_ = std::max<int64_t>(most_rows_, blocks_->starts[b + 1] - blocks_->starts[b]);
}

// The r planes with the largest z = ᾱ + σF have mass, α = z − θ. Hinge: θ = (Σ z − C) / r, or 0 within the budget, c = 1/r or 0.
// Squared hinge: θ = σ Σα / 2C, so that θ = κ Σ z / (1 + rκ) with κ = σ / 2C, and c = κ / (1 + rκ).
double ProximalStep::project(size_t block, const double* values) {
    const size_t begin = blocks_->starts[block], end = blocks_->starts[block + 1];
    const double C = blocks_->budgets[block];
    sorted_.clear();
    double positive = 0.0;
    for (size_t p = begin; p < end; ++p) {
        const double z = centre_[p] + sigma_ * values[p];
        if (z > 0.0) {
            sorted_.push_back(z);
            positive += z;
        }
    }
    double threshold = 0.0, share = 0.0;
    if (squared_ || positive > C) {
        std::sort(sorted_.begin(), sorted_.end(), std::greater<>());
        const double ridge = sigma_ / (2.0 * C);
        double sum = 0.0;
        size_t n_free = 0;
        for (const double z : sorted_) {
            if (z <= threshold) break;
            sum += z;
            ++n_free;
            const auto r = static_cast<double>(n_free);
            share = squared_ ? ridge / (1.0 + r * ridge) : 1.0 / r;
            const double next = squared_ ? sum * share : (sum - C) * share;
            // The first planes of the hinge may stay below the budget on their own.
            threshold = std::max(next, 0.0);
        }
    }
    size_t n_free = 0;
    for (size_t p = begin; p < end; ++p) {
        alpha_[p] = std::max(0.0, centre_[p] + sigma_ * values[p] - threshold);
        n_free += alpha_[p] > 0.0;
    }
    const bool is_fixed = n_free == 0 || (!squared_ && share > 0.0 && n_free == 1);
    return is_fixed ? -1.0 : share;
}

ProximalStep::Point ProximalStep::move(const double* w, double sigma, double* sum) {
    sigma_ = sigma;
    std::fill(sum, sum + n_weights(), 0.0);
    blocks_->values(w, values_.data());
    Point point{};
    for (size_t b = 0; b < blocks_->n_blocks(); ++b) {
        if (b % blocks_per_heartbeat == 0) heartbeat();
        const size_t begin = blocks_->starts[b], end = blocks_->starts[b + 1];
        shares_[b] = project(b, values_.data());
        double highest = 0.0, total = 0.0, paid = 0.0, losses = 0.0, moved = 0.0;
        for (size_t p = begin; p < end; ++p) {
            highest = std::max(highest, values_[p]);
            moved += (alpha_[p] - centre_[p]) * (alpha_[p] - centre_[p]);
            if (alpha_[p] <= 0.0) continue;
            total += alpha_[p];
            paid += alpha_[p] * values_[p];
            losses += alpha_[p] * blocks_->losses[p];
            point.n_free += has_curvature(b);
        }
        const double C = blocks_->budgets[b], quadratic = squared_ ? total * (total / (4.0 * C)) : 0.0;
        point.cost += C * (squared_ ? highest * highest : highest);
        point.linear += losses - quadratic;
        point.value += paid - quadratic - moved / (2.0 * sigma);
        if (total > 0.0) blocks_->add(b, alpha_.data() + begin, sum);
    }
    return point;
}

// σ (I − c 11ᵀ) = σ (I − β 11ᵀ)² with β = (1 − √(1 − rc)) / r.
int64_t ProximalStep::write_curvature(size_t& block, double* rows, int64_t room) const {
    const int64_t n = n_weights();
    const double root = std::sqrt(sigma_);
    std::vector<double> unit, total(n);
    int64_t n_rows = 0;
    for (; block < blocks_->n_blocks(); ++block) {
        if (block % blocks_per_heartbeat == 0) heartbeat();
        if (!has_curvature(block)) continue;
        const size_t begin = blocks_->starts[block], end = blocks_->starts[block + 1];
        const auto r = std::count_if(alpha_.begin() + begin, alpha_.begin() + end, [](double a) { return a > 0.0; });
        if (n_rows + r > room) break;
        double* first = rows + n_rows * n;
        std::fill(first, first + r * n, 0.0);
        std::fill(total.begin(), total.end(), 0.0);
        unit.assign(end - begin, 0.0);
        for (size_t p = begin; p < end; ++p) {
            if (alpha_[p] <= 0.0) continue;
            unit[p - begin] = root;
            blocks_->add(block, unit.data(), rows + n_rows++ * n);
            unit[p - begin] = 0.0;
        }
        if (shares_[block] == 0.0) continue;
        const double beta = (1.0 - std::sqrt(std::max(0.0, 1.0 - r * shares_[block]))) / r;
        for (int64_t k = 0; k < r; ++k)
            for (int64_t j = 0; j < n; ++j) total[j] += first[k * n + j];
        for (int64_t k = 0; k < r; ++k)
            for (int64_t j = 0; j < n; ++j) first[k * n + j] -= beta * total[j];
    }
    return n_rows;
}

void ProximalStep::multiply_curvature(const double* vector, double* out) const {
    std::fill(out, out + n_weights(), 0.0);
    std::vector<double> products;
    for (size_t b = 0; b < blocks_->n_blocks(); ++b) {
        if (b % blocks_per_heartbeat == 0) heartbeat();
        if (!has_curvature(b)) continue;
        const size_t begin = blocks_->starts[b], end = blocks_->starts[b + 1];
        products.resize(end - begin);
        blocks_->dots(b, vector, products.data());
        double sum = 0.0;
        for (size_t p = begin; p < end; ++p) sum += alpha_[p] > 0.0 ? products[p - begin] : 0.0;
        for (size_t p = begin; p < end; ++p)
            products[p - begin] = alpha_[p] > 0.0 ? sigma_ * (products[p - begin] - shares_[b] * sum) : 0.0;
        blocks_->add(b, products.data(), out);
    }
}

double ProximalStep::scale() const {
    double mass = 0.0, loss = 0.0;
    for (size_t p = 0; p < centre_.size(); ++p) {
        if (centre_[p] <= 0.0) continue;
        mass += centre_[p];
        loss += blocks_->losses[p];
    }
    if (mass > 0.0 && loss > 0.0) return mass / loss;
    for (const double budget : blocks_->budgets) mass += budget;
    for (size_t b = 0; b < blocks_->n_blocks(); ++b)
        loss += *std::max_element(blocks_->losses.begin() + blocks_->starts[b], blocks_->losses.begin() + blocks_->starts[b + 1]);
    return mass > 0.0 && loss > 0.0 ? mass / loss : 1.0;
}

}  // namespace maxmargin
