#include "solvers/cut_set.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace maxmargin {

namespace {
constexpr int64_t block_size = 4096;  // 32 kB of doubles: reads and writes at random places of a block stay in the nearest cache

bool is_zero(const double* eight) {
    int nonzero = 0;
    for (int lane = 0; lane < 8; ++lane) nonzero |= eight[lane] != 0.0;
    return !nonzero;
}

double squared_norm(const double* w, int64_t n) {
    double sum[8] = {};
    int64_t j = 0;
    for (; j + 8 <= n; j += 8)
        for (int lane = 0; lane < 8; ++lane) sum[lane] += w[j + lane] * w[j + lane];
    for (; j < n; ++j) sum[0] += w[j] * w[j];
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

// Beyond float32 the copy saturates: it only steers the search for planes.
float to_float(double v) { return static_cast<float>(std::clamp(v, -1e37, 1e37)); }
}

CutSet::CutSet(int64_t n_weights) : n_weights_(n_weights), n_blocks_((n_weights + block_size - 1) / block_size), buffer_(n_weights, 0.0) {
    pending_.block_start.assign(n_blocks_ + 1, 0);
}

int64_t CutSet::n_entries() const {
    return std::accumulate(cuts_.begin(), cuts_.end(), int64_t{0},
                           [](int64_t sum, const Cut& cut) { return sum + static_cast<int64_t>(cut.offset.size()); });
}

void CutSet::clear_buffer() {
    for (int64_t b = 0; b < n_blocks_; ++b)
        for (int64_t j = pending_.block_start[b]; j < pending_.block_start[b + 1]; ++j)
            buffer_[b * block_size + pending_.offset[j]] = 0.0;
}

void CutSet::assemble(const PlaneSpace& space, const PlaneBatch& planes, const double* sample_weight) {
    clear_buffer();
    const auto scratch = space.scratch();
    double loss = 0.0;
    for (int64_t k = 0; k < planes.size(); ++k) {
        const int32_t example = planes.examples[k];
        const double s = sample_weight ? sample_weight[example] : 1.0;
        if (s == 0.0) continue;
        loss += s * planes.losses[k];
        space.add(example, planes.code(k), planes.losses[k], s, buffer_.data(), *scratch);
    }
    pending_.loss = loss;
    compress();
}

void CutSet::load(double loss, std::span<const double> sum) {
    std::copy(sum.begin(), sum.end(), buffer_.begin());
    pending_.loss = loss;
    compress();
}

void CutSet::compress() {
    pending_.offset.clear();
    pending_.wide.clear();
    pending_.narrow.clear();
    bool is_narrow = true;
    for (int64_t b = 0; b < n_blocks_; ++b) {
        pending_.block_start[b] = static_cast<int64_t>(pending_.offset.size());
        const int64_t begin = b * block_size, end = std::min(begin + block_size, n_weights_);
        for (int64_t j = begin; j < end; ++j) {
            // Most of the buffer is zero: pass over it eight at a time.
            while (j + 8 <= end && is_zero(buffer_.data() + j)) j += 8;
            if (j == end) break;
            const double v = buffer_[j];
            if (v == 0.0) continue;
            pending_.offset.push_back(static_cast<uint16_t>(j - begin));
            pending_.wide.push_back(v);
            is_narrow = is_narrow && std::abs(v) <= 32767.0 && static_cast<double>(static_cast<int16_t>(v)) == v;
        }
    }
    pending_.block_start[n_blocks_] = static_cast<int64_t>(pending_.offset.size());
    if (!is_narrow) return;
    pending_.narrow.resize(pending_.wide.size());
    std::transform(pending_.wide.begin(), pending_.wide.end(), pending_.narrow.begin(), [](double v) { return static_cast<int16_t>(v); });
    pending_.wide.clear();
}

// A block's entries of one cut are too few for the hardware to notice the stream: they are asked for one cut ahead.
void CutSet::prefetch_block(int64_t cut, int64_t block) const {
#if defined(__GNUC__) || defined(__clang__)
    if (cut >= size()) return;
    const Cut& next = cuts_[cut];
    const int64_t begin = next.block_start[block], end = next.block_start[block + 1];
    const auto touch = [](const auto* first, const auto* last) {
        for (auto at = reinterpret_cast<const char*>(first); at < reinterpret_cast<const char*>(last); at += 64) __builtin_prefetch(at);
    };
    touch(next.offset.data() + begin, next.offset.data() + end);
    if (next.wide.empty()) touch(next.narrow.data() + begin, next.narrow.data() + end);
    else touch(next.wide.data() + begin, next.wide.data() + end);
#else
    (void)cut, (void)block;
#endif
}

double CutSet::dot_block(const Cut& cut, int64_t block, const double* dense) const {
    const double* base = dense + block * block_size;
    const int64_t begin = cut.block_start[block], end = cut.block_start[block + 1];
    const auto sum_of = [&](const auto* values) {
        const uint16_t* offset = cut.offset.data();
        double sum[4] = {};
        int64_t j = begin;
        for (; j + 4 <= end; j += 4)
            for (int lane = 0; lane < 4; ++lane) sum[lane] += static_cast<double>(values[j + lane]) * base[offset[j + lane]];
        for (; j < end; ++j) sum[0] += static_cast<double>(values[j]) * base[offset[j]];
        return (sum[0] + sum[1]) + (sum[2] + sum[3]);
    };
    return cut.wide.empty() ? sum_of(cut.narrow.data()) : sum_of(cut.wide.data());
}

double CutSet::pending_dot(const double* w) const {
    double sum = 0.0;
    for (int64_t b = 0; b < n_blocks_; ++b) sum += dot_block(pending_, b, w);
    return sum;
}

void CutSet::add_pending(double a, double* w) const {
    for (int64_t b = 0; b < n_blocks_; ++b)
        for (int64_t j = pending_.block_start[b]; j < pending_.block_start[b + 1]; ++j) {
            const int64_t at = b * block_size + pending_.offset[j];
            w[at] += a * buffer_[at];
        }
}

std::vector<double> CutSet::keep(const Workers& workers) {
    const int64_t n = size();
    std::vector<double> by_block(n_blocks_ * (n + 1));
    for_each_chunk(n_blocks_, workers, [&](int64_t b, int) {
        double* out = by_block.data() + b * (n + 1);
        for (int64_t k = 0; k < n; ++k) {
            prefetch_block(k + 1, b);
            out[k] = dot_block(cuts_[k], b, buffer_.data());
        }
        out[n] = dot_block(pending_, b, buffer_.data());
    });
    std::vector<double> row(n + 1, 0.0);
    for (int64_t b = 0; b < n_blocks_; ++b)
        for (int64_t k = 0; k <= n; ++k) row[k] += by_block[b * (n + 1) + k];
    // Last, so that an interrupted call keeps nothing. A copy takes no more room than it needs.
    cuts_.push_back(pending_);
    return row;
}

double CutSet::add(std::span<const double> coefficients, double* w, float* rounded, const Workers& workers) const {
    std::vector<double> norm2(n_blocks_);
    for_each_chunk(n_blocks_, workers, [&](int64_t b, int) {
        double* base = w + b * block_size;
        for (size_t k = 0; k < cuts_.size(); ++k) {
            const double a = coefficients[k];
            if (a == 0.0) continue;
            prefetch_block(static_cast<int64_t>(k) + 1, b);
            const Cut& cut = cuts_[k];
            const auto add_values = [&](const auto* values) {
                for (int64_t j = cut.block_start[b]; j < cut.block_start[b + 1]; ++j)
                    base[cut.offset[j]] += a * static_cast<double>(values[j]);
            };
            if (cut.wide.empty()) add_values(cut.narrow.data());
            else add_values(cut.wide.data());
        }
        const int64_t begin = b * block_size, end = std::min(begin + block_size, n_weights_);
        norm2[b] = squared_norm(w + begin, end - begin);
        if (!rounded) return;
        for (int64_t j = begin; j < end; ++j) rounded[j] = to_float(w[j]);
    });
    return std::accumulate(norm2.begin(), norm2.end(), 0.0);
}

void CutSet::remove(std::span<const int64_t> cuts) {
    for (auto it = cuts.rbegin(); it != cuts.rend(); ++it) cuts_.erase(cuts_.begin() + *it);
}

}  // namespace maxmargin
