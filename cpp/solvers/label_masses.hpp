// α by example and label, for those labels that carry mass: few of many.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "qp/label_qp.hpp"

namespace maxmargin {

class LabelMasses {
  public:
    explicit LabelMasses(int64_t n_examples) : places_(n_examples) {}

    std::span<const LabelMass> of(int64_t example) const {
        const Place& place = places_[example];
        return {pool_.data() + place.begin, static_cast<size_t>(place.size)};
    }
    const void* place_of(int64_t example) const { return &places_[example]; }

    // An example that outgrows its room moves to the end of the pool: what it leaves behind is less than what is in use.
    void set(int64_t example, std::span<const LabelMass> masses) {
        Place& place = places_[example];
        const auto size = static_cast<int32_t>(masses.size());
        if (size > place.room) {
            place.room = std::max(size, 2 * place.room);
            place.begin = static_cast<int64_t>(pool_.size());
            pool_.resize(pool_.size() + place.room);
        }
        place.size = size;
        std::copy(masses.begin(), masses.end(), pool_.begin() + place.begin);
    }

    void scale(double by) {
        for (LabelMass& mass : pool_) mass.alpha *= by;
    }

  private:
    struct Place {
        int64_t begin = 0;
        int32_t size = 0, room = 0;
    };
    std::vector<Place> places_;
    std::vector<LabelMass> pool_;
};

}  // namespace maxmargin
