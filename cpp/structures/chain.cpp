#include "structures/chain.hpp"

#include <algorithm>
#include <limits>

#include "scores/kernels.hpp"

namespace maxmargin {

namespace {
template <class Scalar>
constexpr Scalar minus_infinity = -std::numeric_limits<Scalar>::infinity();
}

Chain::Chain(const ChainData& data) : data_(data) {}

bool Chain::is_truth(int64_t example, const int32_t* code) const {
    return std::equal(code, code + rows(example).length(), truth(example));
}

double Chain::loss(int64_t example, const int32_t* code) const {
    const RowRange range = rows(example);
    const int32_t* y = truth(example);
    double sum = 0.0;
    for (int64_t t = 0; t < range.length(); ++t)
        if (code[t] != y[t]) sum += data_.loss(range.begin + t, y[t], code[t], data_.n_labels);
    return sum;
}

void Chain::between(int64_t example, const int32_t* y, const int32_t* code, Parts& parts) const {
    const RowRange range = rows(example);
    const int64_t k = data_.n_labels, last = range.length() - 1;
    for (int64_t t = 0; t <= last; ++t) {
        const bool differs = code[t] != y[t];
        if (differs) {
            parts.nodes.push_back({range.begin + t, y[t], 1});
            parts.nodes.push_back({range.begin + t, code[t], -1});
        }
        if (t > 0 && (differs || code[t - 1] != y[t - 1])) {
            parts.table.push_back({y[t - 1] * k + y[t], 1});
            parts.table.push_back({code[t - 1] * k + code[t], -1});
        }
    }
    if (!data_.has_ends) return;
    if (code[0] != y[0]) {
        parts.table.push_back({k * k + y[0], 1});
        parts.table.push_back({k * k + code[0], -1});
    }
    if (code[last] != y[last]) {
        parts.table.push_back({k * k + k + y[last], 1});
        parts.table.push_back({k * k + k + code[last], -1});
    }
}

template <class Scalar>
void Chain::prepare_any(const Scalar* table, int stride, std::vector<Scalar>& out) const {
    const int64_t k = data_.n_labels;
    // Nothing else writes behind the labels of a row.
    if (static_cast<int64_t>(out.size()) != (k + 2) * stride) out.assign((k + 2) * stride, minus_infinity<Scalar>);
    for (int64_t from = 0; from < k; ++from) {
        Scalar* row = out.data() + from * stride;
        std::copy_n(table + from * k, k, row);
        if (!data_.forbidden) continue;
        for (int64_t to = 0; to < k; ++to)
            if (data_.forbidden[from * k + to]) row[to] = minus_infinity<Scalar>;
    }
    Scalar* start = out.data() + k * stride;
    Scalar* stop = start + stride;
    for (int64_t label = 0; label < k; ++label) {
        start[label] = data_.has_ends ? table[k * k + label] : Scalar(0);
        stop[label] = data_.has_ends ? table[k * k + k + label] : Scalar(0);
    }
}
template void Chain::prepare_any(const float*, int, std::vector<float>&) const;
template void Chain::prepare_any(const double*, int, std::vector<double>&) const;

template <class Scalar>
void Chain::prepare_entry_any(const Scalar* table, int64_t index, int stride, std::vector<Scalar>& out) const {
    // Transitions come first, then the weights of start and stop: all are rows of n_labels.
    const int64_t k = data_.n_labels, row = index / k, label = index % k;
    if (row < k && data_.forbidden && data_.forbidden[index]) return;
    out[row * stride + label] = table[index];
}
template void Chain::prepare_entry_any(const float*, int64_t, int, std::vector<float>&) const;
template void Chain::prepare_entry_any(const double*, int64_t, int, std::vector<double>&) const;

template <class Scalar>
void Chain::add_loss(RowRange range, PartScores<Scalar> scores) const {
    const int32_t* y = data_.truth + range.begin;
    for (int64_t t = 0; t < range.length(); ++t) {
        Scalar* row = scores.node + t * scores.stride;
        if (!data_.loss.cost) {
            // Subtracting at the truth instead of adding everywhere else shifts the row by a constant.
            row[y[t]] -= static_cast<Scalar>(data_.loss.weight ? data_.loss.weight[range.begin + t] : 1.0);
            continue;
        }
        for (int32_t label = 0; label < data_.n_labels; ++label)
            row[label] += static_cast<Scalar>(data_.loss(range.begin + t, y[t], label, data_.n_labels));
    }
}

// Forward maxima only; the path is found backwards by looking for the predecessor that attains the maximum, which
// costs one column per position instead of a compare-and-select for every label pair.
template <class Scalar>
void Chain::viterbi(int64_t length, PartScores<Scalar> scores, const Scalar* first, const Scalar* last, std::vector<Scalar>& alpha,
                    int32_t* code) const {
    const Prepared<Scalar> ends = prepared(scores);
    const int k = data_.n_labels, stride = scores.stride;
    alpha.resize(length * stride);
    for (int label = 0; label < stride; ++label) alpha[label] = first[label] + scores.node[label];
    for (int64_t t = 1; t < length; ++t) {
        Scalar* now = alpha.data() + t * stride;
        max_plus(now - stride, ends.transition, k, stride, now);
        const Scalar* node = scores.node + t * stride;
        for (int label = 0; label < stride; ++label) now[label] += node[label];
    }
    const auto best_of = [k](auto score) {
        int best = 0;
        auto best_score = score(0);
        for (int label = 1; label < k; ++label)
            if (const auto s = score(label); s > best_score) {
                best = label;
                best_score = s;
            }
        return best;
    };
    const Scalar* end = alpha.data() + (length - 1) * stride;
    code[length - 1] = best_of([&](int label) { return end[label] + last[label]; });
    for (int64_t t = length - 1; t > 0; --t) {
        const Scalar* before = alpha.data() + (t - 1) * stride;
        const int to = code[t];
        code[t - 1] = best_of([&](int from) { return before[from] + ends.transition[from * stride + to]; });
    }
}

void Chain::search(int64_t example, PartScores<float> scores, Search kind, SearchMemory<float>& memory, int32_t* code) const {
    if (kind == Search::margin) add_loss(rows(example), scores);
    const Prepared<float> ends = prepared(scores);
    viterbi(rows(example).length(), scores, ends.start, ends.stop, memory.scores, code);
}

void Chain::search(int64_t example, PartScores<double> scores, Search kind, SearchMemory<double>& memory, int32_t* code) const {
    if (kind == Search::slack) return search_slack(example, scores, code);
    if (kind == Search::margin) add_loss(rows(example), scores);
    const Prepared<double> ends = prepared(scores);
    viterbi(rows(example).length(), scores, ends.start, ends.stop, memory.scores, code);
}

// The true labels beside the span take the place of start and stop.
template <class Scalar>
void Chain::search_within_any(int64_t example, RowRange places, PartScores<Scalar> scores, SearchMemory<Scalar>& memory, int32_t* code) const {
    const RowRange all = rows(example);
    const int32_t* y = truth(example);
    const Prepared<Scalar> ends = prepared(scores);
    const int k = data_.n_labels, stride = scores.stride;
    add_loss({all.begin + places.begin, all.begin + places.end}, scores);
    memory.ends.assign(stride, minus_infinity<Scalar>);
    const bool is_first = places.begin == 0, is_last = places.end == all.length();
    if (!is_last)
        for (int label = 0; label < k; ++label) memory.ends[label] = ends.transition[label * stride + y[places.end]];
    std::copy(y, y + all.length(), code);
    viterbi(places.length(), scores, is_first ? ends.start : ends.transition + y[places.begin - 1] * stride, is_last ? ends.stop : memory.ends.data(),
            memory.scores, code + places.begin);
}
template void Chain::search_within_any(int64_t, RowRange, PartScores<float>, SearchMemory<float>&, int32_t*) const;
template void Chain::search_within_any(int64_t, RowRange, PartScores<double>, SearchMemory<double>&, int32_t*) const;

double Chain::path_score(RowRange range, PartScores<double> scores, const int32_t* code) const {
    const Prepared<double> ends = prepared(scores);
    double sum = ends.start[code[0]] + ends.stop[code[range.length() - 1]];
    for (int64_t t = 0; t < range.length(); ++t) {
        sum += scores.node[t * scores.stride + code[t]];
        if (t > 0) sum += ends.transition[code[t - 1] * scores.stride + code[t]];
    }
    return sum;
}

void Chain::max_marginals(int64_t example, PartScores<double> scores, double* out) const {
    const Prepared<double> ends = prepared(scores);
    const int64_t length = rows(example).length();
    const int k = data_.n_labels, stride = scores.stride;
    std::vector<double> forward(length * stride), backward(length * stride, minus_infinity<double>);
    for (int label = 0; label < k; ++label) {
        forward[label] = ends.start[label] + scores.node[label];
        backward[(length - 1) * stride + label] = ends.stop[label];
    }
    for (int64_t t = 1; t < length; ++t) {
        double* now = forward.data() + t * stride;
        max_plus(now - stride, ends.transition, k, stride, now);
        for (int label = 0; label < k; ++label) now[label] += scores.node[t * stride + label];
    }
    for (int64_t t = length - 2; t >= 0; --t)
        for (int from = 0; from < k; ++from) {
            double best = minus_infinity<double>;
            for (int to = 0; to < k; ++to)
                best = std::max(best, ends.transition[from * stride + to] + scores.node[(t + 1) * stride + to] +
                                          backward[(t + 1) * stride + to]);
            backward[t * stride + from] = best;
        }
    for (int64_t t = 0; t < length; ++t)
        for (int label = 0; label < k; ++label) out[t * k + label] = forward[t * stride + label] + backward[t * stride + label];
}

}  // namespace maxmargin
