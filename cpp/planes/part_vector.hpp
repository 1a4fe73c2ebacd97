// A combination of planes of one example, coefficients of the same part added up: it is never longer than the example has parts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planes/plane_parts.hpp"

namespace maxmargin {

class PartVector {
  public:
    size_t size() const { return terms_.size(); }
    void clear() { terms_.clear(); }
    // this += a · other
    void add(double a, const PartVector& other) { add(a, std::span<const Term>(other.terms_)); }
    // this += a ψ for one of the planes.
    void add(double a, const PlaneParts& planes, size_t plane);
    // Writes the vector out as one more of an example's planes.
    void write(PlaneParts& planes) const;

  private:
    struct Term {
        int64_t row;    // no_row for a weight of its own
        int64_t place;  // the label, or the number of the weight
        double coefficient;
        bool is_before(const Term& other) const { return row != other.row ? row < other.row : place < other.place; }
    };
    static constexpr int64_t no_row = -1;

    void add(double a, std::span<const Term> terms);

    std::vector<Term> terms_;  // by row and place, each once
};

}  // namespace maxmargin
