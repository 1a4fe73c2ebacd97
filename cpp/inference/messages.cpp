#include "inference/messages.hpp"

#include <algorithm>
#include <limits>

#include "inference/extremes.hpp"
#include "scores/kernels.hpp"

namespace maxmargin {

namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

struct TwoLargest {
    double best, second;
};

// The largest score and the largest of the others, four times side by side: one would wait for itself.
TwoLargest two_largest(const double* scores, int n) {
    double best[4], second[4];
    std::fill_n(best, 4, minus_infinity);
    std::fill_n(second, 4, minus_infinity);
    const auto add = [&](int j, double score) {
        second[j] = larger(second[j], smaller(best[j], score));
        best[j] = larger(best[j], score);
    };
    int k = 0;
    for (; k + 4 <= n; k += 4)
        for (int j = 0; j < 4; ++j) add(j, scores[k + j]);
    for (; k < n; ++k) add(0, scores[k]);
    for (int j = 1; j < 4; ++j) {
        add(0, best[j]);
        second[0] = larger(second[0], second[j]);
    }
    return {best[0], second[0]};
}

// Equal labels score w, all others 0: only the best label of the sender matters, and the second best where w < 0 keeps
// the best one from being used by the label equal to it.
void send_potts(double w, int n_from, int n_to, const double* scores, double* message) {
    const auto [best, second] = two_largest(scores, n_from);
    const int n_shared = std::min(n_from, n_to);
    if (w >= 0.0) {
        for (int label = 0; label < n_shared; ++label) message[label] = larger(best, scores[label] + w);
    } else {
        // Of two labels that are the best the second is as good.
        const double kept = larger(second, best + w);
        for (int label = 0; label < n_shared; ++label) message[label] = scores[label] == best ? kept : best;
    }
    std::fill(message + n_shared, message + n_to, best);
}

}  // namespace

void send(const LinkScores& link, Toward toward, const double* scores, double* message) {
    const bool to_second = toward == Toward::second;
    if (!link.table) send_potts(link.potts, to_second ? link.n_first : link.n_second, to_second ? link.n_second : link.n_first, scores, message);
    else if (to_second) max_plus_of_rows(scores, link.table, link.n_first, link.n_second, message);
    else max_plus_in_rows(scores, link.table, link.n_first, link.n_second, message);
}

void add_given(const LinkScores& link, Toward toward, int label, double* scores) {
    const int n = toward == Toward::second ? link.n_second : link.n_first;
    if (!link.table) {
        if (label < n) scores[label] += link.potts;
    } else if (toward == Toward::second) {
        const double* row = link.table + static_cast<int64_t>(label) * link.n_second;
        for (int k = 0; k < n; ++k) scores[k] += row[k];
    } else {
        for (int k = 0; k < n; ++k) scores[k] += link.table[static_cast<int64_t>(k) * link.n_second + label];
    }
}

}  // namespace maxmargin
