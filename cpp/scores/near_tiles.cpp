#include "scores/near_tiles.hpp"

#include <algorithm>

#include "scores/kernels.hpp"

namespace maxmargin {

namespace {
// Boxes hold rounded features: what that may take off an exponent is less.
constexpr double rounding = 0.01;
// So many panels are compared with all of them to learn how many are far apart.
constexpr int64_t most_sampled = 64;
constexpr float far_away = 1e15F;
}  // namespace

template <class Scalar>
Boxes<Scalar>::Boxes(const Scalar* groups, int group_size, int64_t n_points, int64_t n_features, std::span<const int32_t> point_codes)
    : n_boxes((n_points + group_size - 1) / group_size), padded((n_boxes + panel_rows - 1) / panel_rows * panel_rows), lows(padded * n_features, far_away),
      highs(padded * n_features, far_away), codes(n_boxes, -1) {
    for (int64_t box = 0; box < n_boxes; ++box) {
        const int64_t first = box * group_size, length = std::min<int64_t>(group_size, n_points - first);
        for (int64_t f = 0; f < n_features; ++f) {
            const Scalar* values = groups + first * n_features + f * group_size;
            const auto [low, high] = std::minmax_element(values, values + length);
            lows[f * padded + box] = *low;
            highs[f * padded + box] = *high;
        }
        if (point_codes.empty()) continue;
        const auto own = point_codes.subspan(first, length);
        if (std::all_of(own.begin(), own.end(), [&](int32_t code) { return code == own.front(); })) codes[box] = own.front();
    }
}

template <class Scalar>
const std::vector<TileRun>& NearTiles<Scalar>::find(const Boxes<Scalar>& panels, int64_t panel, const Boxes<Scalar>& tiles, const RepeatedParts<Scalar>& parts,
                                                    double least) {
    const int64_t n = tiles.n_boxes, n_features = static_cast<int64_t>(tiles.lows.size()) / std::max<int64_t>(tiles.padded, 1);
    bounds_.assign(tiles.padded, Scalar{0});
    if (const int32_t code = panels.codes[panel]; code >= 0)
        for (int64_t tile = 0; tile < n; ++tile)
            if (tiles.codes[tile] >= 0) bounds_[tile] = parts.exponent(code, tiles.codes[tile]);
    box_bounds(BoxTask<Scalar>{panels.lows.data() + panel, panels.highs.data() + panel, panels.padded, tiles.lows.data(), tiles.highs.data(), tiles.padded,
                               n_features, bounds_.data()});
    runs_.clear();
    const auto limit = static_cast<Scalar>(least - rounding);
    for (int64_t tile = 0; tile < n; ++tile) {
        if (bounds_[tile] < limit) continue;
        if (!runs_.empty() && runs_.back().end == tile) ++runs_.back().end;
        else runs_.push_back({tile, tile + 1});
    }
    return runs_;
}

template <class Scalar>
double NearTiles<Scalar>::far_share(const Boxes<Scalar>& panels, const RepeatedParts<Scalar>& parts, double least) {
    const int64_t n = std::min(panels.n_boxes, most_sampled);
    int64_t n_near = 0;
    for (int64_t k = 0; k < n; ++k)
        for (const TileRun& run : find(panels, k * panels.n_boxes / n, panels, parts, least)) n_near += run.end - run.begin;
    return n == 0 ? 0.0 : 1.0 - static_cast<double>(n_near) / (static_cast<double>(n) * static_cast<double>(panels.n_boxes));
}

template struct Boxes<float>;
template struct Boxes<double>;
template class NearTiles<float>;
template class NearTiles<double>;

}  // namespace maxmargin
