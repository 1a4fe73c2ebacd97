#include "planes/linear_space.hpp"

#include <algorithm>
#include <utility>

#include "planes/linear_scratch.hpp"

namespace maxmargin {

namespace {

// Rows scored together before their examples are decoded: enough to amortise the calls, few enough to stay in cache.
constexpr int64_t rows_per_run = 256;
constexpr int64_t examples_per_chunk = 64;
// A sum over the examples counts each feature of a row twice at most, each transition between rows too.
constexpr int64_t largest_count = int64_t{1} << 30;

template <class Scalar>
void rescale(Scalar* scores, int64_t n, double scale) {
    if (scale == 1.0) return;
    for (int64_t j = 0; j < n; ++j) scores[j] *= static_cast<Scalar>(scale);
}

}  // namespace

LinearSpace::LinearSpace(const Features& features, std::shared_ptr<const Structure> structure, Rescaling rescaling)
    : PlaneSpace(rescaling),
      features_(features),
      structure_(std::move(structure)),
      stride_(padded_labels(structure_->n_labels())),
      has_counts_(rescaling == Rescaling::margin && features_.is_all_ones() && structure_->counts_table() &&
                  std::max(features_.indptr[features_.n_rows], features_.n_rows) < largest_count) {}

std::unique_ptr<PlaneScratch> LinearSpace::scratch() const { return std::make_unique<Scratch>(); }

// The slack-rescaled search weighs scores against losses level by level and runs in double only.
bool LinearSpace::can_round() const { return rescaling() == Rescaling::margin; }

template <class Scalar>
auto LinearSpace::scorer(const Scalar* w, double scale) const {
    return [this, w, scale](int64_t first_row, int64_t n_rows, Scalar* node) {
        score_rows(ScoreTask<Scalar>{&features_, nullptr, first_row, n_rows, w, stride_, node});
        rescale(node, n_rows * stride_, scale);
    };
}

// Fills in the node scores of examples first … end − 1 (contiguous) and calls found(example, code) for each.
template <class Scalar, class Fill, class Found>
void LinearSpace::search_run(int64_t first, int64_t end, const Scalar* table, Search kind, PassMemory<Scalar>& memory,
                             Fill&& fill, Found&& found) const {
    const int64_t begin_row = structure_->rows(first).begin, end_row = structure_->rows(end - 1).end;
    memory.node.resize((end_row - begin_row) * stride_);
    fill(begin_row, end_row - begin_row, memory.node.data());
    for (int64_t example = first; example < end; ++example) {
        memory.code.resize(structure_->code_length(example));
        Scalar* node = memory.node.data() + (structure_->rows(example).begin - begin_row) * stride_;
        structure_->search(example, PartScores<Scalar>{node, stride_, table}, kind, memory.search, memory.code.data());
        found(example, memory.code);
    }
}

template <class Scalar, class Fill, class Found>
void LinearSpace::search_ids(std::span<const int64_t> ids, const Scalar* table, Search kind, PassMemory<Scalar>& memory, Fill&& fill,
                             Found&& found) const {
    for (size_t k = 0; k < ids.size();) {
        size_t next = k + 1;
        const int64_t begin_row = structure_->rows(ids[k]).begin;
        while (next < ids.size() && ids[next] == ids[next - 1] + 1 && structure_->rows(ids[next]).end - begin_row <= rows_per_run) ++next;
        search_run(ids[k], ids[next - 1] + 1, table, kind, memory, fill, found);
        k = next;
    }
}

template <class Scalar>
PlaneBatch LinearSpace::separate_any(std::span<const int64_t> ids, const Scalar* w, Search kind, const Workers& workers, double scale, bool with_values) const {
    std::vector<Scalar> table;
    structure_->prepare(w + table_start(), stride_, table);
    rescale(table.data(), static_cast<int64_t>(table.size()), scale);
    const auto n = static_cast<int64_t>(ids.size());
    // Planes come out in the order of the ids whatever the chunks are, so small batches may be cut finer for more threads.
    const int64_t chunk_size = workers.n_threads > 1 ? std::clamp<int64_t>(n / (4 * workers.n_threads), 1, examples_per_chunk) : examples_per_chunk;
    const int64_t n_chunks = (n + chunk_size - 1) / chunk_size;
    std::vector<PlaneBatch> found(n_chunks);
    std::vector<PassMemory<Scalar>> memory(std::max(workers.n_threads, 1));
    for_each_chunk(n_chunks, workers, [&](int64_t chunk, int thread) {
        const int64_t begin = chunk * chunk_size, end = std::min(begin + chunk_size, n);
        PassMemory<Scalar>& own = memory[thread];
        const auto fill = [&](int64_t first_row, int64_t n_rows, Scalar* node) {
            scorer(w, scale)(first_row, n_rows, node);
            if (!with_values) return;
            own.first_row = first_row;
            own.plain.assign(node, node + n_rows * stride_);
        };
        search_ids(ids.subspan(begin, end - begin), table.data(), kind, own, fill, [&](int64_t example, const std::vector<int32_t>& code) {
            if (structure_->is_truth(example, code.data())) return;
            const double loss = structure_->loss(example, code.data());
            found[chunk].add(static_cast<int32_t>(example), loss, code);
            if (with_values) found[chunk].values.push_back(value_found(example, code, loss, w + table_start(), scale, own));
        });
    });
    PlaneBatch all;
    for (const PlaneBatch& part : found) all.append(part);
    return all;
}

// From the scores that the search began with: to read the rows of the planes again would take a seventh to a half of its time.
template <class Scalar>
double LinearSpace::value_found(int64_t example, Code code, double loss, const Scalar* table, double scale, PassMemory<Scalar>& memory) const {
    memory.parts.clear();
    structure_->difference(example, code.data(), memory.parts);
    double product = 0.0, of_table = 0.0;
    for (const NodePart& part : memory.parts.nodes) product += part.sign * static_cast<double>(memory.plain[(part.row - memory.first_row) * stride_ + part.label]);
    for (const TablePart& part : memory.parts.table) of_table += part.coefficient * static_cast<double>(table[part.index]);
    return loss - factor(loss) * (product + scale * of_table);
}

double LinearSpace::decoding_work() const {
    // Both go through memory by labels; a pair of labels takes half as long again as a feature and a label.
    constexpr double per_pair = 1.5;
    if (structure_->n_table() == 0 || features_.n_rows == 0) return 0.0;
    const auto n_rows = static_cast<double>(features_.n_rows), n_labels = static_cast<double>(structure_->n_labels());
    const double entries = features_.is_sparse() ? static_cast<double>(features_.indptr[features_.n_rows]) / n_rows : static_cast<double>(features_.n_features);
    // Under slack rescaling there is a table for every value that the loss of a sequence can have.
    const double tables = rescaling() == Rescaling::slack ? n_rows / static_cast<double>(n_examples()) : 1.0;
    return per_pair * tables * n_labels / std::max(entries, 1.0);
}

PlaneBatch LinearSpace::separate(std::span<const int64_t> ids, WeightsView w, Search kind, const Workers& workers, double scale, bool with_values) const {
    return w.rounded && can_round() ? separate_any(ids, w.rounded, kind, workers, scale, with_values)
                                    : separate_any(ids, w.exact, kind, workers, scale, with_values);
}

PlaneBatch LinearSpace::k_best(std::span<const int64_t> ids, const double* w, int64_t k) const {
    PlaneBatch found;
    std::vector<int32_t> codes;
    std::vector<double> values;
    for (const int64_t example : ids)
        with_scores(example, w, [&](PartScores<double> scores) {
            structure_->k_best(example, scores, k, codes, values);
            const auto length = static_cast<size_t>(structure_->code_length(example));
            for (size_t m = 0; m < values.size(); ++m) {
                const Code code{codes.data() + m * length, length};
                if (!structure_->is_truth(example, code.data()))
                    found.add(static_cast<int32_t>(example), structure_->loss(example, code.data()), code);
            }
        });
    return found;
}

// fill(first_row, n_rows, node) writes the node scores that are searched.
template <class Scalar, class Fill>
ReducedCut LinearSpace::sum_found(const Scalar* table, const double* sample_weight, const Workers& workers, Fill&& fill) const {
    // The number of chunks depends on n alone, so that sums are the same for any number of threads.
    const int64_t n = n_examples(), n_chunks = std::min<int64_t>(64, (n + examples_per_chunk - 1) / examples_per_chunk);
    std::vector<ReducedCut> partial(n_chunks);
    std::vector<PassMemory<Scalar>> memory(std::max(workers.n_threads, 1));
    std::vector<Parts> parts(std::max(workers.n_threads, 1));
    for_each_chunk(n_chunks, workers, [&](int64_t chunk, int thread) {
        ReducedCut& cut = partial[chunk];
        cut.sum.assign(n_weights(), 0.0);
        const auto add = [&](int64_t example, const std::vector<int32_t>& code) {
            const double s = sample_weight ? sample_weight[example] : 1.0;
            if (s == 0.0 || structure_->is_truth(example, code.data())) return;
            const double delta = structure_->loss(example, code.data());
            cut.loss += s * delta;
            ++cut.n_planes;
            parts[thread].clear();
            structure_->difference(example, code.data(), parts[thread]);
            add_parts(parts[thread], s * factor(delta), cut.sum.data());
        };
        const int64_t begin = chunk * n / n_chunks, end = (chunk + 1) * n / n_chunks;
        const auto counts = [&](int64_t i) { return !sample_weight || sample_weight[i] != 0.0; };
        for (int64_t first = begin; first < end;) {
            int64_t next = first + 1;
            if (!counts(first)) {
                first = next;
                continue;
            }
            const int64_t begin_row = structure_->rows(first).begin;
            while (next < end && counts(next) && structure_->rows(next).end - begin_row <= rows_per_run) ++next;
            search_run(first, next, table, search_kind(), memory[thread], fill, add);
            first = next;
        }
    });
    ReducedCut total;
    total.sum.assign(n_weights(), 0.0);
    for (const ReducedCut& part : partial) {
        total.loss += part.loss;
        total.n_planes += part.n_planes;
        for (size_t j = 0; j < total.sum.size(); ++j) total.sum[j] += part.sum[j];
    }
    return total;
}

template <class Scalar>
ReducedCut LinearSpace::sum_any(const Scalar* w, const double* sample_weight, const Workers& workers) const {
    std::vector<Scalar> table;
    structure_->prepare(w + table_start(), stride_, table);
    return sum_found(table.data(), sample_weight, workers, scorer(w, 1.0));
}

ReducedCut LinearSpace::separate_and_sum(WeightsView w, const double* sample_weight, const Workers& workers) const {
    return w.rounded && can_round() ? sum_any(w.rounded, sample_weight, workers) : sum_any(w.exact, sample_weight, workers);
}

ReducedCut LinearSpace::sum_on_line(Line line, const double* sample_weight, const Workers& workers) const {
    const auto mix = [&](int64_t first_row, int64_t n_rows, double* node) {
        for (int64_t j = 0; j < n_rows * stride_; ++j) node[j] = line.score(first_row * stride_ + j);
    };
    return sum_found<double>(nullptr, sample_weight, workers, mix);
}

std::vector<int32_t> LinearSpace::predict(WeightsView w, const Workers& workers) const {
    std::vector<double> table;
    structure_->prepare(w.exact + table_start(), stride_, table);
    const int64_t n = n_examples(), n_chunks = (n + examples_per_chunk - 1) / examples_per_chunk;
    std::vector<int64_t> offsets(n + 1, 0);
    for (int64_t i = 0; i < n; ++i) offsets[i + 1] = offsets[i] + structure_->code_length(i);
    std::vector<int32_t> codes(offsets[n]);
    std::vector<PassMemory<double>> memory(std::max(workers.n_threads, 1));
    for_each_chunk(n_chunks, workers, [&](int64_t chunk, int thread) {
        const int64_t begin = chunk * examples_per_chunk, end = std::min(begin + examples_per_chunk, n);
        std::vector<int64_t> ids(end - begin);
        for (int64_t i = begin; i < end; ++i) ids[i - begin] = i;
        search_ids(std::span<const int64_t>(ids), table.data(), Search::plain, memory[thread], scorer(w.exact, 1.0),
                   [&](int64_t example, const std::vector<int32_t>& code) {
                       std::copy(code.begin(), code.end(), codes.begin() + offsets[example]);
                   });
    });
    return codes;
}

// Number is double, or int32_t for features that are all 1.
template <class Number>
void LinearSpace::add_parts(const Parts& parts, Number a, Number* w) const {
    for (size_t p = 0; p < parts.nodes.size();) {
        const NodePart& part = parts.nodes[p];
        const Number c = a * part.sign;
        Number* base = w + part.label;
        // A wrong label is two parts of one row: reading its features once for both is most of the cost.
        if (p + 1 < parts.nodes.size() && parts.nodes[p + 1].row == part.row) {
            const NodePart& second = parts.nodes[p + 1];
            const Number c2 = a * second.sign;
            const int64_t shift = second.label - part.label;
            features_.for_each(part.row, [&](int64_t f, double x) {
                Number* at = base + f * stride_;
                at[0] += c * static_cast<Number>(x);
                at[shift] += c2 * static_cast<Number>(x);
            });
            p += 2;
        } else {
            features_.for_each(part.row, [&](int64_t f, double x) { base[f * stride_] += c * static_cast<Number>(x); });
            ++p;
        }
    }
    Number* table = w + table_start();
    for (const TablePart& part : parts.table) table[part.index] += a * static_cast<Number>(part.coefficient);
}

void LinearSpace::add_difference(int32_t example, Code code, double a, double* w, PlaneScratch& scratch) const {
    Parts& parts = static_cast<Scratch&>(scratch).parts;
    parts.clear();
    structure_->difference(example, code.data(), parts);
    add_parts(parts, a, w);
}

double LinearSpace::add_changes(const PlaneBatch& before, const PlaneBatch& after, const double* sample_weight, double* sum) const {
    // An example without a plane has its truth.
    struct Output {
        const int32_t* code;
        double loss;
    };
    const auto outputs_of = [&](const PlaneBatch& planes) {
        std::vector<Output> outputs;
        for (int64_t example = 0; example < n_examples(); ++example) outputs.push_back({structure_->true_code(example), 0.0});
        for (int64_t k = 0; k < planes.size(); ++k) outputs[planes.examples[k]] = {planes.code(k).data(), planes.losses[k]};
        return outputs;
    };
    const std::vector<Output> from = outputs_of(before), to = outputs_of(after);
    double change = 0.0;
    Parts parts;
    for (int64_t example = 0; example < n_examples(); ++example) {
        if (from[example].code == to[example].code) continue;
        heartbeat();
        const double s = sample_weight ? sample_weight[example] : 1.0;
        change += s * (to[example].loss - from[example].loss);
        parts.clear();
        structure_->between(example, from[example].code, to[example].code, parts);
        add_parts(parts, s, sum);
    }
    return change;
}

void LinearSpace::count(int32_t example, Code code, int32_t* sum, PlaneScratch& scratch) const {
    Parts& parts = static_cast<Scratch&>(scratch).parts;
    parts.clear();
    structure_->difference(example, code.data(), parts);
    add_parts(parts, int32_t{1}, sum);
}

}  // namespace maxmargin
