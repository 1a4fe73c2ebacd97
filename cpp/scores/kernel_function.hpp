// Kernel functions of two feature rows, and the loop over them that is compiled once per instruction set.
#pragma once

#include <cstdint>

namespace maxmargin {

enum class KernelKind { linear, polynomial, rbf, sigmoid };

// x·z, (γ x·z + coef0)^degree, exp(−γ‖x − z‖²), tanh(γ x·z + coef0): scikit-learn's names.
struct KernelFunction {
    KernelKind kind = KernelKind::linear;
    double gamma = 1.0;
    double coef0 = 0.0;
    int32_t degree = 3;
};

// Rows stand side by side in panels: feature f of row r of a panel is panel[f * panel_rows + r].
constexpr int panel_rows = 16;
// So many points meet a panel at once: their sums and the panel's row of a feature fill the registers.
template <class Scalar>
constexpr int tile_points = sizeof(Scalar) == sizeof(float) ? 5 : 2;

// One panel of rows and some tiles of points, which lie as panels do: points[f * tile_points + p] for each tile. For the RBF kernel
// features are scaled so that 2^(x·z + term of x + term of z) is its value; other kernels have no terms.
template <class Scalar>
struct KernelTask {
    KernelFunction function;
    const Scalar* rows;
    const Scalar* row_terms;
    const Scalar* points;
    const Scalar* point_terms;
    int64_t n_features;
    int64_t n_tiles;
    Scalar* values;  // points × panel_rows
    bool adds = false;  // whether products are added to what values holds before the kernel is taken of them
};

// The same for one sparse row with a panel of points.
template <class Scalar>
struct SparseKernelTask {
    KernelFunction function;
    const int32_t* indices;
    const Scalar* entries;
    int64_t length;
    Scalar row_term;
    const Scalar* points;  // a panel
    const Scalar* point_terms;
    Scalar* values;  // panel_rows
};

// sums[r] += Σ_k coefficients[k] values[k][r]: what the points of a panel's values add up to for its rows,
template <class Scalar>
struct PanelSum {
    const Scalar* coefficients;
    const Scalar* values;  // points × panel_rows
    int64_t n_points;
    double* sums;  // panel_rows
};

// and sums[k][r] += coefficients[r] values[k][r]: the share of each row in what the rows add up to for the points.
template <class Scalar>
struct MirroredSum {
    const Scalar* coefficients;
    const Scalar* values;
    int64_t n_points;
    Scalar* sums;  // points × panel_rows
};

// One box and many, each the least and greatest of every feature: bounds[k] −= ½ · (the squared distance of the box to the k-th).
template <class Scalar>
struct BoxTask {
    const Scalar* lows;   // of the one box, feature f at f * step
    const Scalar* highs;
    int64_t step;
    const Scalar* many_lows;  // features × n_boxes
    const Scalar* many_highs;
    int64_t n_boxes;  // a multiple of panel_rows
    int64_t n_features;
    Scalar* bounds;
};

}  // namespace maxmargin
