// Which points are near enough to a row for the RBF kernel to count: boxes around a few of them at a time tell it without a look at
// the points.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace maxmargin {

// Features that take few values together, such as one-hot columns, as one number per row: their share of the exponent of the RBF
// kernel, base 2, is looked up.
template <class Scalar>
struct RepeatedParts {
    std::vector<int32_t> codes;     // of rows in whole panels; empty: there are none
    std::vector<Scalar> exponents;  // codes × codes
    int64_t n_codes = 0;

    Scalar exponent(int32_t one, int32_t other) const { return exponents[one * n_codes + other]; }
};

// The least and the greatest value of each feature in groups of points, and the code that all points of a group have.
template <class Scalar>
struct Boxes {
    int64_t n_boxes = 0;
    int64_t padded = 0;               // n_boxes and, far from all others, some to fill vectors with
    std::vector<Scalar> lows, highs;  // features × padded
    std::vector<int32_t> codes;       // of a box; −1: several, or none

    // Of n points that lie in groups of this size, feature by feature; codes are those of the points, if they have any.
    Boxes() = default;
    Boxes(const Scalar* groups, int group_size, int64_t n_points, int64_t n_features, std::span<const int32_t> point_codes);
};

struct TileRun {
    int64_t begin, end;
};

// Finds the tiles that hold a point whose kernel value with a row of a panel may be 2^least or more.
template <class Scalar>
class NearTiles {
  public:
    // Runs of such tiles, in their order; they stay until the next call.
    const std::vector<TileRun>& find(const Boxes<Scalar>& panels, int64_t panel, const Boxes<Scalar>& tiles, const RepeatedParts<Scalar>& parts, double least);

    // Which share of the pairs of panels are so far apart, by a sample of them.
    double far_share(const Boxes<Scalar>& panels, const RepeatedParts<Scalar>& parts, double least);

  private:
    std::vector<Scalar> bounds_;
    std::vector<TileRun> runs_;
};

}  // namespace maxmargin
