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

void VectorSpace::difference_dots(int32_t, std::span<const Code> codes, WeightsView w, PlaneScratch&, double* out) const {
    for (size_t k = 0; k < codes.size(); ++k) {
        double sum = 0.0;
        for (size_t j = 0; j < n_entries(codes[k]); ++j) {
            const int32_t at = codes[k][j];
            sum += value(codes[k], j) * (w.rounded ? static_cast<double>(w.rounded[at]) : w.exact[at]);
        }
        out[k] = sum;
    }
}

void VectorSpace::add_difference(int32_t, Code code, double a, double* w, PlaneScratch&) const {
    for (size_t j = 0; j < n_entries(code); ++j) w[code[j]] += a * value(code, j);
}

void VectorSpace::difference_inner(int32_t, Code code, std::span<const Code> others, PlaneScratch&, double* out) const {
    for (size_t k = 0; k < others.size(); ++k) {
        const Code other = others[k];
        double sum = 0.0;
        for (size_t i = 0, j = 0; i < n_entries(code) && j < n_entries(other);) {
            if (code[i] < other[j]) ++i;
            else if (other[j] < code[i]) ++j;
            else sum += value(code, i++) * value(other, j++);
        }
        out[k] = sum;
    }
}

}  // namespace maxmargin
