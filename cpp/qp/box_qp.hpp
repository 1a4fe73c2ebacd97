// A dual whose variables have bounds of their own, two at a time:
//
//     max_α  Σ_k α_k c_k − ½ Σ_kl α_k α_l G_kl      subject to 0 ≤ α_k ≤ upper_k
//
// A step takes the variable that would gain most by itself, with the one that gains most beside it by the second order (Fan,
// Chen and Lin 2005, whose pairs keep a sum as well), to the best point of their rectangle. Single variables of rows that have much in common push
// each other back and forth: pairs take a tenth of the steps.
#pragma once

#include <cstdint>

namespace maxmargin {

// Arrays have a multiple of this many numbers. Variables added to get there have curvature 1 and are 0 otherwise.
constexpr int64_t box_padding = 8;
constexpr int64_t padded_box(int64_t n) { return (n + box_padding - 1) / box_padding * box_padding; }

// A batch of a larger problem is solved until no variable would gain more than this share of what one would before, or so many steps for
// each were made.
constexpr double batch_least_share = 0.01;
constexpr int64_t batch_steps_per_variable = 10;

struct BoxQp {
    int64_t n;
    const double* gram;       // n × n, symmetric
    const double* curvature;  // G_kk > 0
    const double* upper;      // infinity where there is no bound
    double* values;           // c − Gα
    double* alpha;
    double* memory;  // 3 n numbers
    double least_share;  // ends when no variable would gain more than this share of what one would at the start
    int64_t most_steps;
};

// The variables of many such problems' duals, or of one that is too large to be solved at once: a row with one of two labels each, at scores of
// all rows. Values are c − y · score, α has a ridge r ≥ 0 beside its curvature under the squared hinge.
struct BoxRows {
    int64_t n;  // a multiple of box_padding
    const double *scores, *alpha;
    const double *loss, *y, *curvature, *inverse, *upper, *ridge, *budget;
    bool is_squared;
    double tolerance;
    double* worth;  // what the best step gains; where there is none, −|derivative|
};

struct BoxGap {
    double total = 0.0;    // Σ over rows of the gap of each
    double largest = 0.0;  // gap − tolerance · budget
};

struct BoxSteps {
    int64_t steps = 0;
    double gain = 0.0;  // of the dual: more than 0 with every step, also where G is not positive semi-definite
};

}  // namespace maxmargin
