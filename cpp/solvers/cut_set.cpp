#include "solvers/cut_set.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>

namespace maxmargin {

namespace {
constexpr int64_t block_size = 8192;  // 32 kB of counts: reads at random places of a block stay in the nearest cache
constexpr double largest_narrow = 32767.0;
// A larger integer would be cut into too many entries.
constexpr double largest_split = 32.0 * largest_narrow;

// Whether the 64 bytes from here on hold nothing.
template <class Number>
bool is_zero_line(const Number* line) {
    int nonzero = 0;
    for (size_t lane = 0; lane < 64 / sizeof(Number); ++lane) nonzero |= line[lane] != 0;
    return !nonzero;
}

template <class Number>
double dot(const Number* a, const double* b, int64_t n) {
    double sum[8] = {};
    int64_t j = 0;
    for (; j + 8 <= n; j += 8)
        for (int lane = 0; lane < 8; ++lane) sum[lane] += static_cast<double>(a[j + lane]) * b[j + lane];
    for (; j < n; ++j) sum[0] += static_cast<double>(a[j]) * b[j];
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

// Σ value(j) · base[offset[j]] in four running sums: int64_t where both are integers, else double.
template <class Sum, class Number, class Value>
Sum sum_at(const Number* base, const uint16_t* offset, int64_t n, Value&& value) {
    Sum sum[4] = {};
    int64_t j = 0;
    for (; j + 4 <= n; j += 4)
        for (int lane = 0; lane < 4; ++lane) sum[lane] += static_cast<Sum>(base[offset[j + lane]]) * value(j + lane);
    for (; j < n; ++j) sum[0] += static_cast<Sum>(base[offset[j]]) * value(j);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

// Beyond float32 the copy saturates: it only steers the search for planes.
float to_float(double v) { return static_cast<float>(std::clamp(v, -1e37, 1e37)); }
}  // namespace

CutSet::CutSet(int64_t n_weights) : n_weights_(n_weights), n_blocks_((n_weights + block_size - 1) / block_size) {
    pending_.start.resize(n_blocks_ + 1);
}

// The buffer of this kind, all zero. A change of kind gives the other one's memory back.
template <class Number>
std::vector<Number>& CutSet::empty_buffer() {
    const auto make = [&](auto& wanted, auto& other) -> std::vector<Number>& {
        if (wanted.empty()) {
            pending_.start.assign(n_blocks_ + 1, {});
            std::decay_t<decltype(other)>().swap(other);
            wanted.assign(n_weights_, Number{0});
        }
        for (int64_t b = 0; b < n_blocks_; ++b)
            for (int64_t j = pending_.start[b].plus; j < pending_.start[b + 1].plus; ++j) wanted[b * block_size + pending_.offset[j]] = Number{0};
        return wanted;
    };
    if constexpr (std::is_integral_v<Number>) return make(counts_, sums_);
    else return make(sums_, counts_);
}

// add(k, sum) adds plane k to the sum, which becomes the pending cut.
template <class Number, class Add>
void CutSet::sum_planes(int64_t n_planes, Add&& add) {
    constexpr int64_t planes_per_poll = 64;
    std::vector<Number>& sum = empty_buffer<Number>();
    pending_.loss = 0.0;
    try {
        for (int64_t k = 0; k < n_planes; ++k) {
            if (k % planes_per_poll == 0) heartbeat();
            add(k, sum.data());
        }
    } catch (...) {
        // Half a sum is no cut, and the next one must not start from it.
        std::fill(sum.begin(), sum.end(), Number{0});
        pending_.loss = 0.0;
        compress(sum);
        throw;
    }
    compress(sum);
}

void CutSet::assemble(const PlaneSpace& space, const PlaneBatch& planes, const double* sample_weight) {
    const auto scratch = space.scratch();
    // Counts are sure to fit only with one plane of each example.
    if (!sample_weight && space.has_counts() && planes.size() <= space.n_examples()) {
        sum_planes<int32_t>(planes.size(), [&](int64_t k, int32_t* counts) {
            pending_.loss += planes.losses[k];
            space.count(planes.examples[k], planes.code(k), counts, *scratch);
        });
        return;
    }
    sum_planes<double>(planes.size(), [&](int64_t k, double* sums) {
        const int32_t example = planes.examples[k];
        const double s = sample_weight ? sample_weight[example] : 1.0;
        if (s == 0.0) return;
        pending_.loss += s * planes.losses[k];
        space.add(example, planes.code(k), planes.losses[k], s, sums, *scratch);
    });
}

void CutSet::load(double loss, std::span<const double> sum) {
    std::vector<double>& sums = empty_buffer<double>();
    std::copy(sum.begin(), sum.end(), sums.begin());
    pending_.loss = loss;
    compress(sums);
}

// Dots and sums are linear in the entries, so an integer beyond 16 bits is as well kept in several of one place.
void CutSet::push_value(Cut& cut, uint16_t offset, double value) {
    const bool fits = std::abs(value) <= largest_split && static_cast<double>(static_cast<int32_t>(value)) == value;
    if (!fits && cut.wide.empty()) {
        cut.wide.assign(cut.narrow.begin(), cut.narrow.end());
        cut.narrow.clear();
    }
    if (!fits || !cut.wide.empty()) {
        cut.offset.push_back(offset);
        cut.wide.push_back(value);
        return;
    }
    while (value != 0.0) {
        const double part = std::clamp(value, -largest_narrow, largest_narrow);
        cut.offset.push_back(offset);
        cut.narrow.push_back(static_cast<int16_t>(part));
        value -= part;
    }
}

template <class Number>
void CutSet::compress(const std::vector<Number>& dense) {
    pending_.offset.clear();
    pending_.narrow.clear();
    pending_.wide.clear();
    std::vector<uint16_t> minus, rest;
    constexpr int64_t line = 64 / sizeof(Number);
    for (int64_t b = 0; b < n_blocks_; ++b) {
        const int64_t begin = b * block_size, end = std::min(begin + block_size, n_weights_);
        BlockStart& start = pending_.start[b];
        start.plus = static_cast<int64_t>(pending_.offset.size());
        minus.clear();
        rest.clear();
        for (int64_t j = begin; j < end; ++j) {
            // Most of the buffer is zero: pass over it a line at a time.
            while (j + line <= end && is_zero_line(dense.data() + j)) j += line;
            if (j == end) break;
            const Number v = dense[j];
            if (v == 0) continue;
            (v == 1 ? pending_.offset : v == -1 ? minus : rest).push_back(static_cast<uint16_t>(j - begin));
        }
        start.minus = static_cast<int64_t>(pending_.offset.size());
        pending_.offset.insert(pending_.offset.end(), minus.begin(), minus.end());
        start.rest = static_cast<int64_t>(pending_.offset.size());
        start.value = static_cast<int64_t>(std::max(pending_.narrow.size(), pending_.wide.size()));
        for (const uint16_t at : rest) push_value(pending_, at, static_cast<double>(dense[begin + at]));
        const int64_t n_entries = static_cast<int64_t>(pending_.offset.size()) - start.rest;
        start.is_full = n_entries == end - begin && rest.size() == static_cast<size_t>(n_entries);
    }
    const auto n = static_cast<int64_t>(pending_.offset.size());
    pending_.start[n_blocks_] = {n, n, n, static_cast<int64_t>(std::max(pending_.narrow.size(), pending_.wide.size()))};
}

// A block's entries of one cut are too few for the hardware to notice the stream: they are asked for one cut ahead.
void CutSet::prefetch_block(int64_t cut, int64_t block) const {
#if defined(__GNUC__) || defined(__clang__)
    if (cut >= size()) return;
    const Cut& next = cuts_[cut];
    const BlockStart& start = next.start[block];
    const BlockStart& end = next.start[block + 1];
    const auto touch = [](const auto* first, const auto* last) {
        for (auto at = reinterpret_cast<const char*>(first); at < reinterpret_cast<const char*>(last); at += 64) __builtin_prefetch(at);
    };
    touch(next.offset.data() + start.plus, next.offset.data() + end.plus);
    if (next.wide.empty()) touch(next.narrow.data() + start.value, next.narrow.data() + end.value);
    else touch(next.wide.data() + start.value, next.wide.data() + end.value);
#else
    (void)cut, (void)block;
#endif
}

template <class Number>
double CutSet::dot_block(const Cut& cut, int64_t block, const Number* dense) {
    using Sum = std::conditional_t<std::is_integral_v<Number>, int64_t, double>;
    const Number* base = dense + block * block_size;
    const BlockStart& start = cut.start[block];
    const uint16_t* offset = cut.offset.data();
    const auto one = [](int64_t) { return Sum{1}; };
    const Sum units = sum_at<Sum>(base, offset + start.plus, start.minus - start.plus, one) - sum_at<Sum>(base, offset + start.minus, start.rest - start.minus, one);
    const int64_t n_rest = cut.start[block + 1].plus - start.rest;
    if (cut.wide.empty()) {
        const int16_t* values = cut.narrow.data() + start.value;
        return static_cast<double>(units + sum_at<Sum>(base, offset + start.rest, n_rest, [&](int64_t j) { return static_cast<Sum>(values[j]); }));
    }
    const double* values = cut.wide.data() + start.value;
    if (start.is_full) return dot(base, values, n_rest);
    return static_cast<double>(units) + sum_at<double>(base, offset + start.rest, n_rest, [&](int64_t j) { return values[j]; });
}

void CutSet::add_block(const Cut& cut, int64_t block, double a, double* w) {
    double* base = w + block * block_size;
    const BlockStart& start = cut.start[block];
    const int64_t end = cut.start[block + 1].plus;
    const uint16_t* offset = cut.offset.data();
    for (int64_t j = start.plus; j < start.minus; ++j) base[offset[j]] += a;
    for (int64_t j = start.minus; j < start.rest; ++j) base[offset[j]] -= a;
    const auto add_rest = [&](const auto* values) {
        for (int64_t j = start.rest; j < end; ++j) base[offset[j]] += a * static_cast<double>(*values++);
    };
    if (cut.wide.empty()) add_rest(cut.narrow.data() + start.value);
    else add_rest(cut.wide.data() + start.value);
}

double CutSet::pending_dot(const double* w) const {
    double sum = 0.0;
    for (int64_t b = 0; b < n_blocks_; ++b) sum += dot_block(pending_, b, w);
    return sum;
}

void CutSet::add_pending(double a, double* w) const {
    for (int64_t b = 0; b < n_blocks_; ++b) add_block(pending_, b, a, w);
}

template <class Number>
std::vector<double> CutSet::gram_row(const std::vector<Number>& dense, const Workers& workers) const {
    const int64_t n = size();
    std::vector<double> by_block(n_blocks_ * (n + 1));
    for_each_chunk(n_blocks_, workers, [&](int64_t b, int) {
        double* out = by_block.data() + b * (n + 1);
        for (int64_t k = 0; k < n; ++k) {
            prefetch_block(k + 1, b);
            out[k] = dot_block(cuts_[k], b, dense.data());
        }
        out[n] = dot_block(pending_, b, dense.data());
    });
    std::vector<double> row(n + 1, 0.0);
    for (int64_t b = 0; b < n_blocks_; ++b)
        for (int64_t k = 0; k <= n; ++k) row[k] += by_block[b * (n + 1) + k];
    return row;
}

std::vector<double> CutSet::keep(const Workers& workers) {
    std::vector<double> row = counts_.empty() ? gram_row(sums_, workers) : gram_row(counts_, workers);
    // Last, so that an interrupted call keeps nothing. A copy takes no more room than it needs.
    cuts_.push_back(pending_);
    return row;
}

double CutSet::add(std::span<const double> coefficients, double* w, float* rounded, const Workers& workers) const {
    std::vector<double> norm2(n_blocks_);
    for_each_chunk(n_blocks_, workers, [&](int64_t b, int) {
        for (size_t k = 0; k < cuts_.size(); ++k) {
            if (coefficients[k] == 0.0) continue;
            prefetch_block(static_cast<int64_t>(k) + 1, b);
            add_block(cuts_[k], b, coefficients[k], w);
        }
        const int64_t begin = b * block_size, end = std::min(begin + block_size, n_weights_);
        norm2[b] = dot(w + begin, w + begin, end - begin);
        if (!rounded) return;
        for (int64_t j = begin; j < end; ++j) rounded[j] = to_float(w[j]);
    });
    return std::accumulate(norm2.begin(), norm2.end(), 0.0);
}

void CutSet::remove(std::span<const int64_t> cuts) {
    for (auto it = cuts.rbegin(); it != cuts.rend(); ++it) cuts_.erase(cuts_.begin() + *it);
}

}  // namespace maxmargin
