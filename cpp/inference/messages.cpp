#include "inference/messages.hpp"

#include <algorithm>
#include <limits>

#include "scores/kernels.hpp"

namespace maxmargin {

namespace {

// Equal labels score w, all others 0: only the best label of the sender matters, and the second best where w < 0 keeps
// the best one from being used by the label equal to it.
void send_potts(double w, int n_from, int n_to, const double* scores, double* message) {
    const int best = best_label(scores, n_from);
    const int n_shared = std::min(n_from, n_to);
    std::fill(message, message + n_to, scores[best]);
    if (w >= 0.0) {
        for (int label = 0; label < n_shared; ++label) message[label] = std::max(scores[best], scores[label] + w);
    } else if (best < n_to) {
        double second = -std::numeric_limits<double>::infinity();
        for (int label = 0; label < n_from; ++label)
            if (label != best) second = std::max(second, scores[label]);
        message[best] = std::max(second, scores[best] + w);
    }
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
