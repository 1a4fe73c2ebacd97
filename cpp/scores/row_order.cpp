#include "scores/row_order.hpp"

#include <algorithm>
#include <numeric>

#include "threads/parallel.hpp"

namespace maxmargin {

namespace {
// The feature that spreads most is chosen by so many rows.
constexpr int64_t most_sampled = 64;

double value(const Features& rows, int64_t row, int64_t feature) {
    const int64_t at = row * rows.n_features + feature;
    return rows.values32 ? static_cast<double>(rows.values32[at]) : rows.values64[at];
}

int64_t widest_feature(const Features& rows, std::span<const int64_t> members) {
    const auto n = static_cast<int64_t>(members.size()), n_sampled = std::min(n, most_sampled);
    int64_t widest = 0;
    double most = -1.0;
    for (int64_t f = 0; f < rows.n_features; ++f) {
        double low = value(rows, members[0], f), high = low;
        for (int64_t k = 1; k < n_sampled; ++k) {
            const double x = value(rows, members[k * n / n_sampled], f);
            low = std::min(low, x);
            high = std::max(high, x);
        }
        if (high - low > most) {
            most = high - low;
            widest = f;
        }
    }
    return widest;
}

// Splits at whole groups, so that they do not straddle halves.
void split(const Features& rows, std::span<int64_t> members, int64_t group_size) {
    const auto n = static_cast<int64_t>(members.size());
    if (n <= group_size || rows.n_features == 0) return;
    heartbeat();
    const int64_t half = (n / 2 + group_size - 1) / group_size * group_size, widest = widest_feature(rows, members);
    const auto before = [&](int64_t one, int64_t other) {
        const double x = value(rows, one, widest), z = value(rows, other, widest);
        return x != z ? x < z : one < other;
    };
    std::nth_element(members.begin(), members.begin() + half, members.end(), before);
    split(rows, members.first(half), group_size);
    split(rows, members.subspan(half), group_size);
}
}  // namespace

std::vector<int64_t> order_alike(const Features& rows, std::span<const int32_t> codes, int64_t group_size) {
    std::vector<int64_t> order(rows.n_rows);
    std::iota(order.begin(), order.end(), int64_t{0});
    const auto code = [&](size_t k) { return codes.empty() ? 0 : codes[order[k]]; };
    if (!codes.empty()) std::stable_sort(order.begin(), order.end(), [&](int64_t one, int64_t other) { return codes[one] < codes[other]; });
    for (size_t first = 0, end = 0; first < order.size(); first = end) {
        while (end < order.size() && code(end) == code(first)) ++end;
        split(rows, std::span(order).subspan(first, end - first), group_size);
    }
    return order;
}

}  // namespace maxmargin
