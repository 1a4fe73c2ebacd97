// The slack-rescaled oracle of a chain: max_ȳ Δ(ȳ) (1 + score(ȳ) − score(truth)), exact for losses in whole steps.
//
// best[t][e][label] is the best score of a prefix that ends at t with this label and has lost e steps so far; the answer
// is the e with the largest e · step · (1 + best − truth). O(T E k²) time. Tables of every √T-th position are kept and
// the ones between recomputed while the path is read backwards, so memory is O(√T E k).
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "scores/kernels.hpp"
#include "structures/chain.hpp"
#include "threads/parallel.hpp"

namespace maxmargin {

namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

// The steps lost by each label at each position, and the most that prefixes can lose.
struct StepTable {
    std::vector<int32_t> steps;  // length × n_labels
    std::vector<int64_t> most;   // most[t]: largest total of positions 0 … t
};

}  // namespace

void Chain::search_slack(int64_t example, PartScores<double> scores, int32_t* code) const {
    const RowRange range = rows(example);
    const int32_t* y = truth(example);
    const int k = data_.n_labels, stride = scores.stride;
    const int64_t length = range.length();
    const Prepared<double> ends = prepared(scores);

    StepTable table;
    table.steps.resize(length * k);
    table.most.resize(length);
    for (int64_t t = 0; t < length; ++t) {
        int32_t most = 0;
        for (int label = 0; label < k; ++label) {
            const double loss = data_.loss(range.begin + t, y[t], label, k);
            const auto step = static_cast<int32_t>(std::llround(loss / data_.loss_step));
            table.steps[t * k + label] = step;
            most = std::max(most, step);
        }
        table.most[t] = most + (t > 0 ? table.most[t - 1] : 0);
    }

    const int64_t levels = table.most[length - 1] + 1, cells = levels * stride;
    const auto fill_first = [&](double* out) {
        std::fill(out, out + cells, minus_infinity);
        for (int label = 0; label < k; ++label)
            out[table.steps[label] * stride + label] = ends.start[label] + scores.node[label];
    };
    std::vector<double> reached(cells);
    const auto advance = [&](int64_t t, const double* before, double* out) {
        heartbeat();
        for (int64_t e = 0; e <= table.most[t - 1]; ++e)
            max_plus(before + e * stride, ends.transition, k, stride, reached.data() + e * stride);
        std::fill(out, out + cells, minus_infinity);
        const double* node = scores.node + t * stride;
        for (int label = 0; label < k; ++label) {
            const int64_t step = table.steps[t * k + label];
            for (int64_t e = 0; e <= table.most[t - 1]; ++e)
                out[(e + step) * stride + label] = node[label] + reached[e * stride + label];
        }
    };

    const auto block = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(length))));
    const int64_t n_blocks = (length + block - 1) / block;
    std::vector<double> kept(n_blocks * cells), inside(block * cells);
    std::vector<double> now(cells), before(cells);
    for (int64_t t = 0; t < length; ++t) {
        if (t == 0) fill_first(now.data());
        else advance(t, before.data(), now.data());
        if (t % block == 0) std::copy(now.begin(), now.end(), kept.begin() + t / block * cells);
        now.swap(before);
    }
    const std::vector<double>& last = before;

    const double true_score = path_score(range, scores, y);
    double best_value = 0.0;
    int64_t level = -1;
    int32_t label = 0;
    for (int64_t e = 1; e < levels; ++e)
        for (int32_t l = 0; l < k; ++l) {
            const double value = e * data_.loss_step * (1.0 + last[e * stride + l] + ends.stop[l] - true_score);
            if (value > best_value) {
                best_value = value;
                level = e;
                label = l;
            }
        }
    if (level < 0) {
        std::copy(y, y + length, code);
        return;
    }

    for (int64_t b = n_blocks - 1; b >= 0; --b) {
        const int64_t first = b * block, end = std::min(first + block, length);
        std::copy(kept.begin() + b * cells, kept.begin() + (b + 1) * cells, inside.begin());
        for (int64_t t = first + 1; t < end; ++t) advance(t, inside.data() + (t - 1 - first) * cells, inside.data() + (t - first) * cells);
        // The table before the block's first position is rebuilt when the next block down is read.
        for (int64_t t = end - 1; t >= first; --t) {
            if (t + 1 < length) {
                const double* prefix = inside.data() + (t - first) * cells + level * stride;
                const int32_t to = code[t + 1];
                label = 0;
                double best = minus_infinity;
                for (int32_t from = 0; from < k; ++from) {
                    const double score = prefix[from] + ends.transition[from * stride + to];
                    if (score > best) {
                        best = score;
                        label = from;
                    }
                }
            }
            code[t] = label;
            level -= table.steps[t * k + label];
        }
    }
}

}  // namespace maxmargin
