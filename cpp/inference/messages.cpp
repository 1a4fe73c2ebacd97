#include "inference/messages.hpp"

#include <algorithm>
#include <limits>

#include "inference/extremes.hpp"
#include "scores/kernels.hpp"

namespace maxmargin {

namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

// Four maxima side by side: one would wait for itself.
double largest(const double* scores, int n) {
    double best[4] = {minus_infinity, minus_infinity, minus_infinity, minus_infinity};
    int k = 0;
    for (; k + 4 <= n; k += 4)
        for (int j = 0; j < 4; ++j) best[j] = larger(best[j], scores[k + j]);
    for (; k < n; ++k) best[0] = larger(best[0], scores[k]);
    return larger(larger(best[0], best[1]), larger(best[2], best[3]));
}

// Equal labels score w, all others 0: only the best label of the sender matters, and the second best where w < 0 keeps
// the best one from being used by the label equal to it.
void send_potts(double w, int n_from, int n_to, const double* scores, double* message) {
    const double best = largest(scores, n_from);
    const int n_shared = std::min(n_from, n_to);
    if (w >= 0.0) {
        for (int label = 0; label < n_shared; ++label) message[label] = larger(best, scores[label] + w);
        std::fill(message + n_shared, message + n_to, best);
        return;
    }
    std::fill(message, message + n_to, best);
    const int where = static_cast<int>(std::find(scores, scores + n_from, best) - scores);
    if (where < n_to) message[where] = larger(larger(largest(scores, where), largest(scores + where + 1, n_from - where - 1)), best + w);
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
