#include "planes/plane_space.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

namespace maxmargin {

void PlaneSpace::check(const PlaneBatch& planes) const {
    for (int64_t k = 0; k < planes.size(); ++k) {
        const int32_t example = planes.examples[k];
        if (example < 0 || example >= n_examples())
            throw std::invalid_argument("plane " + std::to_string(k) + " is of example " + std::to_string(example) + ", expected 0 … " + std::to_string(n_examples() - 1) + ".");
        if (!is_code(example, planes.code(k)))
            throw std::invalid_argument("plane " + std::to_string(k) + " is not an output of example " + std::to_string(example) + ": it belongs to another problem.");
    }
}

void PlaneSpace::check_one_each(const PlaneBatch& planes) const {
    check(planes);
    std::vector<bool> is_there(n_examples(), false);
    for (const int32_t example : planes.examples) {
        if (is_there[example]) throw std::invalid_argument("planes must be at most one of each example.");
        is_there[example] = true;
    }
}

void PlaneSpace::dots(int32_t example, std::span<const Code> codes, std::span<const double> losses, WeightsView w,
                      PlaneScratch& scratch, double* out) const {
    scratch.planes.clear();
    for (size_t k = 0; k < codes.size(); ++k) write(example, codes[k], losses[k], scratch.planes, scratch);
    dots(scratch.planes, w, scratch, out);
}

void PlaneSpace::add(int32_t example, Code code, double loss, double a, double* w, PlaneScratch& scratch) const {
    add_difference(example, code, a * factor(loss), w, scratch);
}

void PlaneSpace::inner(int32_t example, Code code, double loss, std::span<const Code> others,
                       std::span<const double> losses, PlaneScratch& scratch, double* out) const {
    scratch.planes.clear();
    for (size_t k = 0; k < others.size(); ++k) write(example, others[k], losses[k], scratch.planes, scratch);
    write(example, code, loss, scratch.planes, scratch);
    std::vector<double> products(others.size() + 1);
    inner(scratch.planes, others.size(), scratch, products.data());
    std::copy_n(products.begin(), others.size(), out);
}

double PlaneSpace::rounding(int32_t example, Code code, double loss, double product, double norm, PlaneScratch& scratch) const {
    double square = 0.0;
    inner(example, code, loss, std::span(&code, 1), std::span(&loss, 1), scratch, &square);
    return rounding(loss, product, norm, square);
}

double PlaneSpace::rounding(double loss, double product, double norm, double square) {
    // The terms of w·ψ can be far larger than their sum; an oracle adds them up in its own order.
    return 1e-9 * (std::abs(loss) + std::abs(product)) + 1e-12 * norm * std::sqrt(square);
}

}  // namespace maxmargin
