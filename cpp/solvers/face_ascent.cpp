// Conjugate gradients over the planes that carry mass, all examples together.
//
// Where planes of many examples pull at few weights, visiting one example at a time crawls: every visit undoes part of the
// others. The planes with α > 0 span a face of the feasible set. On it D is a plain quadratic, and conjugate gradients need
// no more steps than there are weights. A step ends where a plane runs empty or a budget is spent; the face is then
// smaller by that one, and the next step starts on it.
//
// Where weights must stay ≥ 0, their multipliers μ_j > 0 are variables like α: planes e_j without loss and without budget. A
// weight whose μ_j is 0 may fall below 0 on the way; that costs D nothing when μ is made best again for the new α.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "solvers/working_sets.hpp"
#include "solvers/working_sets_memory.hpp"

namespace maxmargin {

namespace {
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr size_t none = std::numeric_limits<size_t>::max();
// Curvature below this share of what the planes have one by one is rounding: the direction is flat.
constexpr double flat = 1e-24;
// Values of the planes follow by a recurrence; after so many products rounding has got into it, and they are made anew.
constexpr int64_t products_per_refresh = 50;
constexpr size_t blocks_per_heartbeat = 64;
}  // namespace

// Arrays run over the carriers (planes with α > 0) of all blocks in which mass can move, and then over the multipliers.
struct WorkingSets::Face {
    struct Part {  // one block
        Block* block;
        size_t begin, end;
        size_t giver = none;   // where the budget is spent: the carrier that gives what the others take; else the zero plane
        double left = 0.0;     // mass of the zero plane
        double ridge = 0.0;    // 1/2C for the squared hinge
    };
    struct Bound {
        double step = infinity;
        Part* part = nullptr;   // null for a multiplier
        size_t emptied = none;  // none: the budget is spent
        bool is_met() const { return part != nullptr || emptied != none; }
    };

    Face(WorkingSets& sets, const double* w);
    size_t size() const { return alpha.size(); }
    // The largest difference in value within each block, weighted by the mass that it could move.
    double gap() const;
    // Starts conjugate gradients at the current α; returns the square of the scaled residual.
    double start();
    // Makes product that of the quadratic form with direction; returns direction · product, 0 where it is flat.
    double multiply();
    // The derivative of D along direction, after multiply.
    double slope() const { return std::inner_product(direction_.begin(), direction_.end(), values_.begin(), 0.0); }
    bool is_stale() const { return n_products_ >= products_per_refresh; }
    Bound first_bound(double step);
    void move(double step);
    void narrow(const Bound& bound);
    // Makes direction conjugate to the one before it.
    void turn(double& square);

    std::vector<Part> parts;
    std::vector<size_t> planes;  // by carrier: its number in the block
    std::vector<double> alpha;   // of carriers; μ of multipliers

  private:
    void add_block(Block& block);
    void add_multipliers();
    // Calls use(number in the arrays, number of its weight) for each multiplier.
    template <class Use>
    void for_multipliers(Use&& use) const {
        for (size_t j = 0; j < sets_.nonnegative_.size(); ++j) use(planes.size() + j, sets_.nonnegative_[j]);
    }
    double left_of(const Block& block) const { return sets_.squared_ ? infinity : block.left(); }
    // The derivatives of D by α at w_.
    void refresh();
    // out[k − begin] = vector·ψ_k for the part's carriers.
    void carrier_dots(const Part& part, const double* vector, double* out) const;
    // Chooses the giver and what is variable.
    void settle(Part& part);
    double value_of_giver(const Part& part, const std::vector<double>& values) const { return part.giver == none ? 0.0 : values[part.giver]; }

    const WorkingSets& sets_;
    std::vector<double> losses_, values_, residual_, direction_, product_;
    std::vector<double> scale_;   // 1 / own curvature; 0: not a variable
    std::vector<double> vector_;  // Σ direction ψ, as long as w
    std::vector<double> w_;
    int64_t n_products_ = 0;      // since values_ were made
};

WorkingSets::Face::Face(WorkingSets& sets, const double* w) : sets_(sets), w_(w, w + sets.space_->n_weights()) {
    for (std::vector<Block>& own : sets.blocks_) {
        heartbeat();
        for (Block& block : own) {
            const int64_t n_carriers = block.n_carriers();
            if (n_carriers > 1 || (n_carriers == 1 && left_of(block) > 0.0)) add_block(block);
        }
    }
    add_multipliers();
    values_.resize(size());
    residual_.resize(size());
    direction_.resize(size());
    product_.resize(size());
    vector_.resize(sets.space_->n_weights());
    refresh();
}

void WorkingSets::Face::refresh() {
    for (size_t i = 0; i < parts.size(); ++i) {
        if (i % blocks_per_heartbeat == 0) heartbeat();
        const Part& part = parts[i];
        carrier_dots(part, w_.data(), values_.data() + part.begin);
        const double total = std::accumulate(alpha.begin() + part.begin, alpha.begin() + part.end, 0.0);
        for (size_t k = part.begin; k < part.end; ++k) values_[k] = losses_[k] - values_[k] - part.ridge * total;
    }
    for_multipliers([&](size_t k, int64_t weight) { values_[k] = -w_[weight]; });
    n_products_ = 0;
}

void WorkingSets::Face::carrier_dots(const Part& part, const double* vector, double* out) const {
    const PlaneParts& written = part.block->parts;
    std::vector<double>& all = sets_.memory_->values;
    all.resize(written.size());
    sets_.space_->dots(written, {vector}, *sets_.memory_->scratch, all.data());
    for (size_t k = part.begin; k < part.end; ++k) out[k - part.begin] = all[planes[k]];
}

void WorkingSets::Face::add_block(Block& block) {
    Part part{.block = &block, .begin = planes.size(), .end = planes.size()};
    if (sets_.squared_) part.ridge = 1.0 / (2.0 * block.budget);
    part.left = left_of(block);
    for (size_t p = 0; p < block.alpha.size(); ++p) {
        if (block.alpha[p] <= 0.0) continue;
        planes.push_back(p);
        alpha.push_back(block.alpha[p]);
        losses_.push_back(block.entries[p].loss);
        scale_.push_back(0.0);
        ++part.end;
    }
    settle(part);
    parts.push_back(part);
}

// A plane e_j has length 1.
void WorkingSets::Face::add_multipliers() {
    for (const double sum : sets_.unclipped_) {
        alpha.push_back(std::max(0.0, -sum));
        scale_.push_back(sum < 0.0 ? 1.0 : 0.0);
    }
}

void WorkingSets::Face::settle(Part& part) {
    const Block& block = *part.block;
    const size_t n = block.alpha.size();
    part.giver = none;
    if (part.left <= 0.0) part.giver = static_cast<size_t>(std::max_element(alpha.begin() + part.begin, alpha.begin() + part.end) - alpha.begin());
    const size_t q = part.giver == none ? 0 : planes[part.giver];
    for (size_t k = part.begin; k < part.end; ++k) {
        const size_t p = planes[k];
        double curvature = block.gram[p * n + p] + part.ridge;
        if (part.giver != none) curvature += block.gram[q * n + q] - 2.0 * block.gram[p * n + q];
        scale_[k] = alpha[k] > 0.0 && k != part.giver && curvature > 0.0 ? 1.0 / curvature : 0.0;
    }
}

double WorkingSets::Face::gap() const {
    double sum = 0.0;
    for (const Part& part : parts) {
        double lowest = part.giver == none ? 0.0 : infinity, highest = -lowest, total = 0.0;
        for (size_t k = part.begin; k < part.end; ++k) {
            if (alpha[k] <= 0.0) continue;
            lowest = std::min(lowest, values_[k]);
            highest = std::max(highest, values_[k]);
            total += alpha[k];
        }
        const double C = part.block->budget;
        // At the optimum of the squared hinge Σα is 2C times the slack.
        sum += (highest - lowest) * (sets_.squared_ ? total + 2.0 * C * highest : C);
    }
    for_multipliers([&](size_t k, int64_t) { sum += alpha[k] * std::abs(values_[k]); });
    return sum;
}

double WorkingSets::Face::start() {
    if (is_stale()) refresh();
    double square = 0.0;
    for (const Part& part : parts)
        for (size_t k = part.begin; k < part.end; ++k) {
            residual_[k] = values_[k] - value_of_giver(part, values_);
            direction_[k] = scale_[k] * residual_[k];
            square += residual_[k] * direction_[k];
        }
    for_multipliers([&](size_t k, int64_t) {
        residual_[k] = values_[k];
        direction_[k] = scale_[k] * residual_[k];
        square += residual_[k] * direction_[k];
    });
    return square;
}

double WorkingSets::Face::multiply() {
    std::fill(vector_.begin(), vector_.end(), 0.0);
    ++n_products_;
    // As a sum of squares: direction · product would lose what planes that nearly cancel leave.
    double own = 0.0, curvature = 0.0;
    for (const Part& part : parts) {
        double sum = 0.0;
        for (size_t k = part.begin; k < part.end; ++k) {
            if (scale_[k] == 0.0) continue;
            sum += direction_[k];
            own += direction_[k] * direction_[k] / scale_[k];
        }
        if (part.giver != none) direction_[part.giver] = -sum;
        std::vector<double>& coefficients = sets_.memory_->change;
        coefficients.assign(part.block->size(), 0.0);
        for (size_t k = part.begin; k < part.end; ++k) coefficients[planes[k]] = direction_[k];
        sets_.space_->add(part.block->parts, coefficients.data(), {vector_.data()}, *sets_.memory_->scratch);
        // The quadratic term of the squared hinge, whose blocks have no giver.
        std::fill(product_.begin() + part.begin, product_.begin() + part.end, part.ridge * sum);
        curvature += part.ridge * sum * sum;
    }
    for_multipliers([&](size_t k, int64_t weight) {
        if (scale_[k] == 0.0) return;
        vector_[weight] += direction_[k];
        own += direction_[k] * direction_[k];
    });
    for_multipliers([&](size_t k, int64_t weight) { product_[k] = vector_[weight]; });
    curvature += std::inner_product(vector_.begin(), vector_.end(), vector_.begin(), 0.0);
    std::vector<double> products;
    for (size_t i = 0; i < parts.size(); ++i) {
        if (i % blocks_per_heartbeat == 0) heartbeat();
        const Part& part = parts[i];
        products.resize(part.end - part.begin);
        carrier_dots(part, vector_.data(), products.data());
        for (size_t k = part.begin; k < part.end; ++k) product_[k] += products[k - part.begin];
    }
    return curvature > flat * own ? curvature : 0.0;
}

WorkingSets::Face::Bound WorkingSets::Face::first_bound(double step) {
    Bound bound{.step = step};
    for (Part& part : parts) {
        double sum = 0.0;
        for (size_t k = part.begin; k < part.end; ++k) {
            sum += direction_[k];
            if (direction_[k] < 0.0 && bound.step * -direction_[k] >= alpha[k]) bound = {alpha[k] / -direction_[k], &part, k};
        }
        if (part.giver == none && sum > 0.0 && bound.step * sum >= part.left) bound = {part.left / sum, &part, none};
    }
    for_multipliers([&](size_t k, int64_t) {
        if (direction_[k] < 0.0 && bound.step * -direction_[k] >= alpha[k]) bound = {alpha[k] / -direction_[k], nullptr, k};
    });
    return bound;
}

void WorkingSets::Face::move(double step) {
    for (size_t j = 0; j < w_.size(); ++j) w_[j] += step * vector_[j];
    for (Part& part : parts) {
        double sum = 0.0;
        const double given = value_of_giver(part, product_);
        for (size_t k = part.begin; k < part.end; ++k) {
            sum += direction_[k];
            alpha[k] = std::max(0.0, alpha[k] + step * direction_[k]);
            values_[k] -= step * product_[k];
            residual_[k] -= step * (product_[k] - given);
        }
        if (part.giver == none) part.left -= step * sum;
    }
    for_multipliers([&](size_t k, int64_t) {
        alpha[k] = std::max(0.0, alpha[k] + step * direction_[k]);
        values_[k] -= step * product_[k];
        residual_[k] -= step * product_[k];
    });
}

void WorkingSets::Face::narrow(const Bound& bound) {
    if (bound.emptied == none) bound.part->left = 0.0;
    else alpha[bound.emptied] = 0.0;
    if (bound.part) settle(*bound.part);
    else scale_[bound.emptied] = 0.0;
}

void WorkingSets::Face::turn(double& square) {
    const double before = std::exchange(square, 0.0);
    for (size_t k = 0; k < size(); ++k) square += scale_[k] * residual_[k] * residual_[k];
    for (size_t k = 0; k < size(); ++k) direction_[k] = scale_[k] * residual_[k] + square / before * direction_[k];
}

// Moves the face's α until they are solved, or products or seconds are used up. Returns the products made.
int64_t WorkingSets::climb(Face& face, double wanted, int64_t max_products, double max_seconds) {
    const auto start = std::chrono::steady_clock::now();
    const auto is_late = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > max_seconds; };
    int64_t products = 0;
    double square = face.start();
    while (products < max_products && square > 0.0 && face.gap() > wanted && !is_late()) {
        const double curvature = face.multiply();
        ++products;
        const double slope = face.slope();
        if (!(slope > 0.0)) break;
        const Face::Bound bound = face.first_bound(curvature > 0.0 ? slope / curvature : infinity);
        if (bound.step == infinity) break;
        face.move(bound.step);
        if (bound.is_met()) face.narrow(bound);
        if (bound.is_met() || face.is_stale()) square = face.start();
        else face.turn(square);
    }
    return products;
}

WorkingSets::Ascent WorkingSets::ascend_face(double tolerance, int64_t max_products, double max_seconds, double* w, const Workers& workers) {
    Ascent result;
    // With w summed afresh: many small steps leave rounding in it.
    const auto dual = [&] {
        weights(w);
        return linear_part() - 0.5 * std::inner_product(w, w + space_->n_weights(), w, 0.0);
    };
    for_each_chunk(1, Workers{1, workers.poll}, [&](int64_t, int) {
        const double before = dual();
        Face face(*this, w);
        const std::vector<double> alpha_before = face.alpha;
        result.products = climb(face, tolerance * std::accumulate(budgets_.begin(), budgets_.end(), 0.0), max_products, max_seconds);
        take(face);
        result.gain = dual() - before;
        if (result.gain >= 0.0) return;
        // Planes whose lengths differ by so much that rounding is larger than the gain: nothing is better than a loss.
        face.alpha = alpha_before;
        take(face);
        weights(w);
        result.gain = 0.0;
    });
    return result;
}

// Makes the face's α those of the working sets.
void WorkingSets::take(const Face& face) {
    for (const Face::Part& part : face.parts)
        for (size_t k = part.begin; k < part.end; ++k) part.block->alpha[face.planes[k]] = face.alpha[k];
}

}  // namespace maxmargin
