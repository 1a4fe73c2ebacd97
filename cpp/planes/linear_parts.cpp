// Arithmetic of planes that are written out over rows and labels.
#include <algorithm>
#include <cmath>

#include "planes/linear_scratch.hpp"
#include "planes/linear_space.hpp"
#include "scores/fetch.hpp"

namespace maxmargin {

namespace {
// Row scores are computed whole up to this many labels; beyond, only the entries a plane needs.
constexpr int widest_whole_row = 64;
// Up to so many pairs of rows are multiplied one by one; beyond, a plane is written out over all weights.
constexpr size_t few_row_pairs = 256;
// Ones of so long a row can be counted in a byte, whatever features they are of.
constexpr int64_t most_counted = 255;
}  // namespace

void LinearSpace::write(int32_t example, Code code, double loss, PlaneParts& planes, PlaneScratch& scratch) const {
    Parts& parts = static_cast<Scratch&>(scratch).parts;
    parts.clear();
    structure_->difference(example, code.data(), parts);
    const double scale = factor(loss);
    if (planes.size() == 0) {
        // The first plane of a block: few get many more.
        planes.nodes.reserve(parts.nodes.size());
        planes.weights.reserve(parts.table.size());
    }
    for (const NodePart& part : parts.nodes) planes.nodes.push_back({planes.slot_of(part.row), part.label, scale * part.sign});
    for (const TablePart& part : parts.table) planes.weights.push_back({table_start() + part.index, scale * part.coefficient});
    planes.close_plane();
}

void LinearSpace::components(int32_t example, Code code, Span within, std::vector<Span>& spans) const {
    const int32_t* truth = structure_->true_code(example);
    spans.clear();
    for (int64_t t = within.begin; t < within.end; ++t) {
        if (code[t] == truth[t]) continue;
        const int64_t begin = t;
        while (t < within.end && code[t] != truth[t]) ++t;
        spans.push_back({begin, t});
    }
}

double LinearSpace::combine(int32_t example, Code inside, Span span, Code outside, std::vector<int32_t>& code) const {
    const int32_t* truth = structure_->true_code(example);
    const int32_t* rest = outside.empty() ? truth : outside.data();
    code.assign(rest, rest + structure_->code_length(example));
    std::copy(inside.begin() + span.begin, inside.begin() + span.end, code.begin() + span.begin);
    return structure_->loss(example, code.data());
}

void LinearSpace::cover(int32_t example, Span span, PlaneParts& planes) const {
    const int64_t first = structure_->rows(example).begin;
    planes.keeps_rows = true;
    for (int64_t t = span.begin; t < span.end; ++t) planes.cover(first + t);
}

bool LinearSpace::search_within(int32_t example, Span span, const PlaneParts& planes, WeightsView w, PlaneScratch& scratch,
                                std::vector<int32_t>& code, double& loss, double& product) const {
    auto& memory = static_cast<Scratch&>(scratch);
    if (w.rounded) return search_within_any(example, span, planes, w.rounded, memory.scores32, memory.search32, code, loss, product);
    return search_within_any(example, span, planes, w.exact, memory.scores64, memory.search64, code, loss, product);
}

void LinearSpace::forget(PlaneScratch& scratch) const {
    auto& memory = static_cast<Scratch&>(scratch);
    memory.search32.has_table = memory.search64.has_table = false;
    memory.search32.moved_table.clear();
    memory.search64.moved_table.clear();
}

// A visit moves few entries of the table, which can be as long as the square of the number of labels.
template <class Scalar>
void LinearSpace::prepare_table(const Scalar* w, PassMemory<Scalar>& memory) const {
    const Scalar* table = w + table_start();
    if (memory.has_table)
        for (const int64_t index : memory.moved_table) structure_->prepare_entry(table, index, stride_, memory.table);
    else
        structure_->prepare(table, stride_, memory.table);
    memory.has_table = true;
    memory.moved_table.clear();
}

template <class Scalar>
bool LinearSpace::search_within_any(int32_t example, Span span, const PlaneParts& planes, const Scalar* w, const std::vector<Scalar>& scores,
                                    PassMemory<Scalar>& memory, std::vector<int32_t>& code, double& loss, double& product) const {
    const int64_t first = structure_->rows(example).begin + span.begin, n_rows = span.end - span.begin;
    memory.node.resize(n_rows * stride_);
    memory.slots.resize(n_rows);
    for (size_t slot = 0; slot < planes.rows.size(); ++slot) {
        const int64_t place = planes.rows[slot] - first;
        if (place < 0 || place >= n_rows) continue;
        memory.slots[place] = static_cast<int64_t>(slot);
        std::copy_n(scores.begin() + static_cast<int64_t>(slot) * stride_, stride_, memory.node.begin() + place * stride_);
    }
    prepare_table(w, memory);
    code.resize(structure_->code_length(example));
    structure_->search_within(example, {span.begin, span.end}, PartScores<Scalar>{memory.node.data(), stride_, memory.table.data()}, memory.search, code.data());
    if (structure_->is_truth(example, code.data())) return false;
    loss = structure_->loss(example, code.data());
    memory.parts.clear();
    structure_->difference(example, code.data(), memory.parts);
    product = 0.0;
    for (const NodePart& part : memory.parts.nodes) product += part.sign * static_cast<double>(scores[memory.slots[part.row - first] * stride_ + part.label]);
    for (const TablePart& part : memory.parts.table) product += part.coefficient * static_cast<double>(w[table_start() + part.index]);
    return true;
}

void LinearSpace::dots(const PlaneParts& planes, WeightsView w, PlaneScratch& scratch, double* out, int64_t next_row, bool all_rows) const {
    auto& memory = static_cast<Scratch&>(scratch);
    if (w.rounded) dots_any(planes, w.rounded, memory.scores32, out, next_row, all_rows);
    else dots_any(planes, w.exact, memory.scores64, out, next_row, all_rows);
}

template <class Scalar>
void LinearSpace::dots_any(const PlaneParts& planes, const Scalar* w, std::vector<Scalar>& scores, double* out, int64_t next_row, bool all_rows) const {
    // Each row is scored once however many planes share it.
    const bool whole_rows = all_rows || stride_ <= widest_whole_row;
    if (whole_rows) {
        const auto n_rows = static_cast<int64_t>(all_rows ? planes.rows.size() : planes.n_used_rows);
        scores.resize(n_rows * stride_);
        score_rows(ScoreTask<Scalar>{&features_, planes.rows.data(), 0, n_rows, w, stride_, scores.data(), next_row});
    }
    const auto node_score = [&](const NodeTerm& term) -> double {
        if (whole_rows) return scores[static_cast<int64_t>(term.slot) * stride_ + term.label];
        double sum = 0.0;
        features_.for_each(planes.rows[term.slot], [&](int64_t f, double x) { sum += x * static_cast<double>(w[f * stride_ + term.label]); });
        return sum;
    };
    sum_terms(planes, w, node_score, out);
}

void LinearSpace::fetch_starts(const PlaneParts& planes) const {
    if (!features_.is_sparse()) return;
    for (const int64_t row : planes.rows) fetch(features_.indptr + row, 2 * sizeof(int64_t));
}

void LinearSpace::fetch_rows(const PlaneParts& planes) const {
    if (!features_.is_sparse()) return;
    for (const int64_t row : planes.rows) {
        const int64_t begin = features_.indptr[row], length = features_.indptr[row + 1] - begin;
        fetch(features_.indices + begin, length * sizeof(int32_t));
    }
}

void LinearSpace::add(const PlaneParts& planes, const double* coefficients, MovingWeights w, PlaneScratch& scratch) const {
    auto& memory = static_cast<Scratch&>(scratch);
    sum_by_label(planes, coefficients, memory);
    if (w.rounded) note_moved_table(planes, coefficients, memory.search32);
    else note_moved_table(planes, coefficients, memory.search64);
    w.with_add([&](auto&& add) {
        for (size_t p = 0; p < planes.size(); ++p) {
            if (coefficients[p] == 0.0) continue;
            for (const WeightTerm& term : planes.weights_of(p)) add(term.weight, coefficients[p] * term.coefficient);
        }
    });
    add_rows(planes, memory, w);
}

void LinearSpace::add_rows(const PlaneParts& planes, Scratch& memory, MovingWeights w) const {
    w.with_add([&](auto&& add) { add_label_sums(planes, memory, add); });
}

// Coefficients are summed by row and label first: what is read and written most is w.
void LinearSpace::sum_by_label(const PlaneParts& planes, const double* coefficients, Scratch& memory) const {
    const size_t n_slots = planes.rows.size(), room = planes.labels_per_row * planes.size();
    memory.n_sums.assign(n_slots, 0);
    memory.sums.resize(n_slots * room);
    memory.sums_per_slot = room;
    for (size_t p = 0; p < planes.size(); ++p) {
        if (coefficients[p] == 0.0) continue;
        for (const NodeTerm& term : planes.nodes_of(p)) {
            Scratch::LabelSum* sums = memory.sums.data() + term.slot * room;
            size_t& n = memory.n_sums[term.slot];
            size_t k = 0;
            while (k < n && sums[k].label != term.label) ++k;
            if (k == n) sums[n++] = {term.label, 0.0};
            sums[k].coefficient += coefficients[p] * term.coefficient;
        }
    }
}

template <class Add>
void LinearSpace::add_label_sums(const PlaneParts& planes, const Scratch& memory, Add&& add) const {
    for (size_t slot = 0; slot < planes.rows.size(); ++slot) {
        const std::span<const Scratch::LabelSum> sums = memory.sums_of(slot);
        const size_t n = sums.size();
        if (n == 2) {
            // Mostly the truth and one other label.
            const Scratch::LabelSum first = sums[0], second = sums[1];
            features_.for_each(planes.rows[slot], [&](int64_t f, double x) {
                add(f * stride_ + first.label, first.coefficient * x);
                add(f * stride_ + second.label, second.coefficient * x);
            });
        } else if (n > 0) {
            features_.for_each(planes.rows[slot], [&](int64_t f, double x) {
                for (size_t k = 0; k < n; ++k) add(f * stride_ + sums[k].label, sums[k].coefficient * x);
            });
        }
    }
}

template <class Scalar>
void LinearSpace::note_moved_table(const PlaneParts& planes, const double* coefficients, PassMemory<Scalar>& memory) const {
    if (!memory.has_table) return;
    for (size_t p = 0; p < planes.size(); ++p) {
        if (coefficients[p] == 0.0) continue;
        for (const WeightTerm& term : planes.weights_of(p)) memory.moved_table.push_back(term.weight - table_start());
    }
    // To lay it out anew takes less time then.
    if (memory.moved_table.size() > memory.table.size()) memory.has_table = false;
}

void LinearSpace::clip(const PlaneParts& planes, MovingWeights w) const {
    for (const WeightTerm& term : planes.weights) w.clip(term.weight);
    if (w.nonnegative->first() >= table_start()) return;
    for (const NodeTerm& term : planes.nodes) features_.for_each(planes.rows[term.slot], [&](int64_t f, double) { w.clip(f * stride_ + term.label); });
}

void LinearSpace::inner(const PlaneParts& planes, size_t plane, PlaneScratch& scratch, double* out) const {
    auto& memory = static_cast<Scratch&>(scratch);
    if (planes.nodes_of(plane).size() * planes.rows.size() <= 2 * few_row_pairs) inner_by_rows(planes, plane, memory, out);
    else inner_by_weights(planes, plane, memory, out);
}

void LinearSpace::multiply_rows(int64_t row, std::span<const int64_t> rows, Scratch& memory) const {
    memory.products.resize(rows.size());
    if (features_.is_all_ones() && features_.indptr[row + 1] - features_.indptr[row] <= most_counted) {
        multiply_ones(row, rows, memory);
        return;
    }
    memory.row.resize(features_.n_features, 0.0);
    features_.for_each(row, [&](int64_t f, double x) { memory.row[f] += x; });
    for (size_t k = 0; k < rows.size(); ++k) {
        double sum = 0.0;
        features_.for_each(rows[k], [&](int64_t f, double x) { sum += x * memory.row[f]; });
        memory.products[k] = sum;
    }
    features_.for_each(row, [&](int64_t f, double) { memory.row[f] = 0.0; });
}

// Counts take an eighth of the memory, and are still near when the next row is multiplied.
void LinearSpace::multiply_ones(int64_t row, std::span<const int64_t> rows, Scratch& memory) const {
    memory.counts.resize(features_.n_features, 0);
    uint8_t* const counts = memory.counts.data();
    const auto for_each = [&](int64_t of, auto&& visit) {
        for (int64_t j = features_.indptr[of]; j < features_.indptr[of + 1]; ++j) visit(counts[features_.indices[j]]);
    };
    for_each(row, [](uint8_t& count) { ++count; });
    for (size_t k = 0; k < rows.size(); ++k) {
        int64_t sum = 0;
        for_each(rows[k], [&](uint8_t count) { sum += count; });
        memory.products[k] = static_cast<double>(sum);
    }
    for_each(row, [](uint8_t& count) { count = 0; });
}

// Rows that differ from the truth interact across positions, where they share a label.
void LinearSpace::inner_by_rows(const PlaneParts& planes, size_t plane, Scratch& memory, double* out) const {
    const std::span<const int64_t> rows{planes.rows.data(), planes.n_used_rows};
    memory.by_label.resize(stride_, 0.0);
    std::fill_n(out, planes.size(), 0.0);
    const std::span<const NodeTerm> own = planes.nodes_of(plane);
    for (size_t begin = 0; begin < own.size();) {
        const int32_t slot = own[begin].slot;
        size_t end = begin + 1;
        while (end < own.size() && own[end].slot == slot) ++end;
        multiply_rows(rows[slot], rows, memory);
        // Looked up by label: a condition in the loop below would cost more than what it saves.
        for (size_t k = begin; k < end; ++k) memory.by_label[own[k].label] += own[k].coefficient;
        for (size_t p = 0; p < planes.size(); ++p)
            for (const NodeTerm& term : planes.nodes_of(p)) out[p] += memory.by_label[term.label] * term.coefficient * memory.products[term.slot];
        for (size_t k = begin; k < end; ++k) memory.by_label[own[k].label] = 0.0;
        begin = end;
    }
    for (size_t p = 0; p < planes.size(); ++p)
        for (const WeightTerm& mine : planes.weights_of(plane))
            for (const WeightTerm& term : planes.weights_of(p))
                if (mine.weight == term.weight) out[p] += mine.coefficient * term.coefficient;
}

// ψ is written out once into a dense buffer and the others are read against it.
void LinearSpace::inner_by_weights(const PlaneParts& planes, size_t plane, Scratch& memory, double* out) const {
    double* const dense = memory.dense.get(n_weights());
    const auto for_each_weight = [&](auto&& visit) {
        for (const NodeTerm& term : planes.nodes_of(plane))
            features_.for_each(planes.rows[term.slot], [&](int64_t f, double x) { visit(f * stride_ + term.label, term.coefficient * x); });
        for (const WeightTerm& term : planes.weights_of(plane)) visit(term.weight, term.coefficient);
    };
    for_each_weight([&](int64_t weight, double value) { dense[weight] += value; });
    dots_any(planes, static_cast<const double*>(dense), memory.scores64, out);
    for_each_weight([&](int64_t weight, double) { dense[weight] = 0.0; });
}

}  // namespace maxmargin
