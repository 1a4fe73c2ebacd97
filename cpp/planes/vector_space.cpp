#include "planes/vector_space.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

namespace maxmargin {

namespace {

size_t n_entries(Code code) { return code.size() / 3; }

double value(Code code, size_t j) {
    double v;
    std::memcpy(&v, code.data() + n_entries(code) + 2 * j, sizeof v);
    return v;
}

}  // namespace

std::vector<int32_t> VectorSpace::encode(std::span<const int32_t> indices, std::span<const double> values) {
    std::vector<int32_t> code(3 * indices.size());
    if (code.empty()) return code;
    std::memcpy(code.data(), indices.data(), indices.size_bytes());
    std::memcpy(code.data() + indices.size(), values.data(), values.size_bytes());
    return code;
}

bool VectorSpace::is_code(int32_t, Code code) const {
    const Code indices = code.first(n_entries(code));
    return code.size() % 3 == 0 && (indices.empty() || (indices.front() >= 0 && indices.back() < n_weights_)) &&
           std::adjacent_find(indices.begin(), indices.end(), std::greater_equal<>()) == indices.end();
}

void VectorSpace::write(int32_t, Code code, double loss, PlaneParts& planes, PlaneScratch&) const {
    for (size_t j = 0; j < n_entries(code); ++j) planes.weights.push_back({code[j], factor(loss) * value(code, j)});
    planes.close_plane();
}

void VectorSpace::dots(const PlaneParts& planes, WeightsView w, PlaneScratch&, double* out, int64_t, bool) const {
    for (size_t p = 0; p < planes.size(); ++p) {
        double sum = 0.0;
        for (const WeightTerm& term : planes.weights_of(p))
            sum += term.coefficient * (w.rounded ? static_cast<double>(w.rounded[term.weight]) : w.exact[term.weight]);
        out[p] = sum;
    }
}

void VectorSpace::add(const PlaneParts& planes, const double* coefficients, MovingWeights w, PlaneScratch&) const {
    w.with_add([&](auto&& add) {
        for (size_t p = 0; p < planes.size(); ++p) {
            if (coefficients[p] == 0.0) continue;
            for (const WeightTerm& term : planes.weights_of(p)) add(term.weight, coefficients[p] * term.coefficient);
        }
    });
}

void VectorSpace::clip(const PlaneParts& planes, MovingWeights w) const {
    for (const WeightTerm& term : planes.weights) w.clip(term.weight);
}

void VectorSpace::inner(const PlaneParts& planes, size_t plane, PlaneScratch&, double* out) const {
    const std::span<const WeightTerm> own = planes.weights_of(plane);
    for (size_t p = 0; p < planes.size(); ++p) {
        const std::span<const WeightTerm> other = planes.weights_of(p);
        double sum = 0.0;
        for (size_t i = 0, j = 0; i < own.size() && j < other.size();) {
            if (own[i].weight < other[j].weight) ++i;
            else if (other[j].weight < own[i].weight) ++j;
            else sum += own[i++].coefficient * other[j++].coefficient;
        }
        out[p] = sum;
    }
}

void VectorSpace::add_difference(int32_t, Code code, double a, double* w, PlaneScratch&) const {
    for (size_t j = 0; j < n_entries(code); ++j) w[code[j]] += a * value(code, j);
}

}  // namespace maxmargin
