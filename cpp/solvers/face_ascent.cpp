// Conjugate gradients over the planes that carry mass, all examples together.
//
// Where planes of many examples pull at few weights, visiting one example at a time crawls: every visit undoes part of the
// others. The planes with α > 0 span a face of the feasible set. On it D is a plain quadratic, and conjugate gradients need
// no more steps than there are weights. A step ends where a plane runs empty or a budget is spent; the face is then
// smaller by that one, and the next step starts on it.
#include <algorithm>
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
constexpr double flat = 1e-13;
}  // namespace

// Arrays run over the carriers (planes with α > 0) of all blocks in which mass can move.
struct WorkingSets::Face {
    struct Part {  // one block
        int64_t example;
        size_t begin, end;
        size_t giver = none;   // where the budget is spent: the carrier that gives what the others take; else the zero plane
        double left = 0.0;     // mass of the zero plane
        double ridge = 0.0;    // 1/2C for the squared hinge
    };
    struct Bound {
        double step = infinity;
        Part* part = nullptr;
        size_t emptied = none;  // none: the budget is spent
    };

    Face(const WorkingSets& sets, const double* w);
    size_t size() const { return planes.size(); }
    // The largest difference in value within each block, weighted by the mass that it could move.
    double gap() const;
    // Starts conjugate gradients at the current α; returns how steep the first direction is.
    double start();
    // Makes product that of the quadratic form with direction; returns direction · product, 0 where it is flat.
    double multiply();
    Bound first_bound(double step);
    void move(double step);
    void narrow(const Bound& bound);
    // Makes direction conjugate to the one before it.
    void turn(double& steepness);

    std::vector<Part> parts;
    std::vector<size_t> planes;  // number in the block
    std::vector<double> alpha;

  private:
    void add_block(int64_t example);
    // Chooses the giver and what is variable.
    void settle(Part& part);
    double value_of_giver(const Part& part, const std::vector<double>& values) const { return part.giver == none ? 0.0 : values[part.giver]; }

    const WorkingSets& sets_;
    std::vector<Code> codes_;
    std::vector<double> losses_, values_, residual_, direction_, product_;
    std::vector<double> scale_;   // 1 / own curvature; 0: not a variable
    std::vector<double> vector_;  // Σ direction ψ, as long as w
};

WorkingSets::Face::Face(const WorkingSets& sets, const double* w) : sets_(sets) {
    for (size_t i = 0; i < sets.blocks_.size(); ++i) {
        const Block& block = sets.blocks_[i];
        const auto n_carriers = std::count_if(block.alpha.begin(), block.alpha.end(), [](double a) { return a > 0.0; });
        if (n_carriers == 0 || (n_carriers == 1 && sets.mass_left(i) == 0.0)) continue;
        sets.value_block(static_cast<int64_t>(i), w);
        add_block(static_cast<int64_t>(i));
    }
    residual_.resize(size());
    direction_.resize(size());
    product_.resize(size());
    vector_.resize(sets.space_->n_weights());
}

void WorkingSets::Face::add_block(int64_t example) {
    const Block& block = sets_.blocks_[example];
    Part part{.example = example, .begin = size(), .end = size()};
    if (sets_.squared_) part.ridge = 1.0 / (2.0 * sets_.budgets_[example]);
    part.left = sets_.mass_left(example);
    for (size_t p = 0; p < block.alpha.size(); ++p) {
        if (block.alpha[p] <= 0.0) continue;
        planes.push_back(p);
        alpha.push_back(block.alpha[p]);
        codes_.push_back(block.code(p));
        losses_.push_back(block.entries[p].loss);
        values_.push_back(sets_.memory_->values[p]);
        scale_.push_back(0.0);
        ++part.end;
    }
    settle(part);
    parts.push_back(part);
}

void WorkingSets::Face::settle(Part& part) {
    const Block& block = sets_.blocks_[part.example];
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
        const double C = sets_.budgets_[part.example];
        // At the optimum of the squared hinge Σα is 2C times the slack.
        sum += (highest - lowest) * (sets_.squared_ ? total + 2.0 * C * highest : C);
    }
    return sum;
}

double WorkingSets::Face::start() {
    double steepness = 0.0;
    for (const Part& part : parts)
        for (size_t k = part.begin; k < part.end; ++k) {
            residual_[k] = values_[k] - value_of_giver(part, values_);
            direction_[k] = scale_[k] * residual_[k];
            steepness += residual_[k] * direction_[k];
        }
    return steepness;
}

double WorkingSets::Face::multiply() {
    std::fill(vector_.begin(), vector_.end(), 0.0);
    PlaneScratch& scratch = *sets_.memory_->scratch;
    const PlaneSpace& space = *sets_.space_;
    double own = 0.0;
    for (const Part& part : parts) {
        double sum = 0.0;
        for (size_t k = part.begin; k < part.end; ++k) {
            if (scale_[k] == 0.0) continue;
            sum += direction_[k];
            own += direction_[k] * direction_[k] / scale_[k];
        }
        if (part.giver != none) direction_[part.giver] = -sum;
        for (size_t k = part.begin; k < part.end; ++k)
            if (direction_[k] != 0.0) space.add(static_cast<int32_t>(part.example), codes_[k], losses_[k], direction_[k], vector_.data(), scratch);
        // The quadratic term of the squared hinge, whose blocks have no giver.
        std::fill(product_.begin() + part.begin, product_.begin() + part.end, part.ridge * sum);
    }
    double curvature = 0.0;
    std::vector<double>& products = sets_.memory_->values;
    for (const Part& part : parts) {
        const size_t n = part.end - part.begin;
        products.resize(n);
        space.dots(static_cast<int32_t>(part.example), std::span(codes_).subspan(part.begin, n), std::span(losses_).subspan(part.begin, n), {vector_.data()}, scratch, products.data());
        for (size_t k = part.begin; k < part.end; ++k) {
            product_[k] += products[k - part.begin];
            curvature += direction_[k] * product_[k];
        }
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
    return bound;
}

void WorkingSets::Face::move(double step) {
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
}

void WorkingSets::Face::narrow(const Bound& bound) {
    if (bound.emptied == none) bound.part->left = 0.0;
    else alpha[bound.emptied] = 0.0;
    settle(*bound.part);
}

void WorkingSets::Face::turn(double& steepness) {
    const double before = std::exchange(steepness, 0.0);
    for (size_t k = 0; k < size(); ++k) steepness += scale_[k] * residual_[k] * residual_[k];
    for (size_t k = 0; k < size(); ++k) direction_[k] = scale_[k] * residual_[k] + steepness / before * direction_[k];
}

WorkingSets::Ascent WorkingSets::ascend_face(double tolerance, int64_t max_products, double* w, const Workers& workers) {
    Ascent result;
    if (!nonnegative_.empty()) return result;
    const Workers alone{1, workers.poll};
    for_each_chunk(1, alone, [&](int64_t, int) {
        Face face(*this, w);
        const double wanted = tolerance * std::accumulate(budgets_.begin(), budgets_.end(), 0.0);
        double steepness = face.start();
        while (result.products < max_products && steepness > 0.0 && face.gap() > wanted) {
            heartbeat();
            const double curvature = face.multiply();
            ++result.products;
            const Face::Bound bound = face.first_bound(curvature > 0.0 ? steepness / curvature : infinity);
            if (bound.step == infinity) break;
            face.move(bound.step);
            result.gain += bound.step * (steepness - 0.5 * bound.step * curvature);
            if (bound.part) {
                face.narrow(bound);
                steepness = face.start();
            } else {
                face.turn(steepness);
            }
        }
        take(face, w);
    });
    return result;
}

void WorkingSets::take(const Face& face, double* w) {
    for (const Face::Part& part : face.parts) {
        Block& block = blocks_[part.example];
        memory_->before = block.alpha;
        for (size_t k = part.begin; k < part.end; ++k) block.alpha[face.planes[k]] = face.alpha[k];
        move(part.example, w);
    }
}

}  // namespace maxmargin
