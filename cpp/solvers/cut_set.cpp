#include "solvers/cut_set.hpp"

#include <algorithm>
#include <numeric>

namespace maxmargin {

namespace {
constexpr int64_t block_size = 65536;  // 16-bit offsets; 512 kB of doubles
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
            const double v = buffer_[j];
            if (v == 0.0) continue;
            pending_.offset.push_back(static_cast<uint16_t>(j - begin));
            pending_.wide.push_back(v);
            is_narrow = is_narrow && static_cast<double>(static_cast<float>(v)) == v;
        }
    }
    pending_.block_start[n_blocks_] = static_cast<int64_t>(pending_.offset.size());
    if (!is_narrow) return;
    pending_.narrow.assign(pending_.wide.begin(), pending_.wide.end());
    pending_.wide.clear();
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

std::vector<double> CutSet::keep(const Workers& workers) {
    cuts_.push_back(pending_);
    Cut& cut = cuts_.back();
    cut.offset.shrink_to_fit();
    cut.narrow.shrink_to_fit();
    cut.wide.shrink_to_fit();
    const int64_t n = size();
    std::vector<double> by_block(n_blocks_ * n);
    for_each_chunk(n_blocks_, workers, [&](int64_t b, int) {
        for (int64_t k = 0; k < n; ++k) by_block[b * n + k] = dot_block(cuts_[k], b, buffer_.data());
    });
    std::vector<double> row(n, 0.0);
    for (int64_t b = 0; b < n_blocks_; ++b)
        for (int64_t k = 0; k < n; ++k) row[k] += by_block[b * n + k];
    return row;
}

void CutSet::add(std::span<const double> coefficients, double* w, const Workers& workers) const {
    for_each_chunk(n_blocks_, workers, [&](int64_t b, int) {
        double* base = w + b * block_size;
        for (size_t k = 0; k < cuts_.size(); ++k) {
            const double a = coefficients[k];
            if (a == 0.0) continue;
            const Cut& cut = cuts_[k];
            const auto add_values = [&](const auto* values) {
                for (int64_t j = cut.block_start[b]; j < cut.block_start[b + 1]; ++j)
                    base[cut.offset[j]] += a * static_cast<double>(values[j]);
            };
            if (cut.wide.empty()) add_values(cut.narrow.data());
            else add_values(cut.wide.data());
        }
    });
}

void CutSet::remove(std::span<const int64_t> cuts) {
    for (auto it = cuts.rbegin(); it != cuts.rend(); ++it) cuts_.erase(cuts_.begin() + *it);
}

}  // namespace maxmargin
