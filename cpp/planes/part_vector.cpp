#include "planes/part_vector.hpp"

#include <algorithm>

namespace maxmargin {

void PartVector::add(double a, const PlaneParts& planes, size_t plane) {
    std::vector<Term> terms;
    for (const WeightTerm& term : planes.weights_of(plane)) terms.push_back({no_row, term.weight, term.coefficient});
    for (const NodeTerm& term : planes.nodes_of(plane)) terms.push_back({planes.rows[term.slot], term.label, term.coefficient});
    std::sort(terms.begin(), terms.end(), [](const Term& s, const Term& t) { return s.is_before(t); });
    add(a, terms);
}

void PartVector::add(double a, std::span<const Term> terms) {
    std::vector<Term> merged;
    merged.reserve(terms_.size() + terms.size());
    size_t next = 0;
    for (const Term& term : terms) {
        while (next < terms_.size() && terms_[next].is_before(term)) merged.push_back(terms_[next++]);
        if (next < terms_.size() && !term.is_before(terms_[next])) merged.push_back(terms_[next++]);
        // A part may stand twice in an output: a transition that is used again.
        if (merged.empty() || merged.back().is_before(term)) merged.push_back({term.row, term.place, 0.0});
        merged.back().coefficient += a * term.coefficient;
    }
    merged.insert(merged.end(), terms_.begin() + static_cast<int64_t>(next), terms_.end());
    terms_.swap(merged);
}

void PartVector::write(PlaneParts& planes) const {
    int64_t row = no_row;
    int32_t slot = 0, n_labels = 0;
    for (const Term& term : terms_) {
        if (term.row == no_row) {
            planes.weights.push_back({term.place, term.coefficient});
            continue;
        }
        if (term.row != row) {
            row = term.row;
            slot = planes.slot_of(row);
            n_labels = 0;
        }
        planes.nodes.push_back({slot, static_cast<int32_t>(term.place), term.coefficient});
        planes.labels_per_row = std::max(planes.labels_per_row, ++n_labels);
    }
    planes.close_plane();
}

}  // namespace maxmargin
