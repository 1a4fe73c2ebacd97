// What one end of a link tells the other: the best it can reach for each label of the other end.
#pragma once

#include "inference/extremes.hpp"
#include "inference/links.hpp"

namespace maxmargin {

enum class Toward { first, second };
inline Toward opposite(Toward toward) { return toward == Toward::first ? Toward::second : Toward::first; }
inline Toward toward(const PairLinks& links, int64_t link, int32_t node) { return links.second(link) == node ? Toward::second : Toward::first; }

// message(b) = max_a scores(a) + link(a, b), b a label of the end the message goes to. Potts takes O(labels), tables
// O(labels of both ends multiplied). At least one score must be finite, the others may be −∞: messages are then finite.
void send(const LinkScores& link, Toward toward, const double* scores, double* message);

// scores(b) += link(label, b), for a label that the other end has taken.
void add_given(const LinkScores& link, Toward toward, int label, double* scores);

inline double pair_score(const LinkScores& link, int first, int second) {
    if (link.table) return link.table[static_cast<int64_t>(first) * link.n_second + second];
    return first == second ? link.potts : 0.0;
}

// The largest score, four times side by side: one would wait for itself.
inline double best_score(const double* scores, int n_labels) {
    double best[4] = {scores[0], scores[0], scores[0], scores[0]};
    int label = 0;
    for (; label + 4 <= n_labels; label += 4)
        for (int k = 0; k < 4; ++k) best[k] = larger(best[k], scores[label + k]);
    for (; label < n_labels; ++label) best[0] = larger(best[0], scores[label]);
    return larger(larger(best[0], best[1]), larger(best[2], best[3]));
}

// The first label with the largest score, none of which is NaN. Where it is cannot be predicted, but only once.
inline int best_label(const double* scores, int n_labels) {
    const double best = best_score(scores, n_labels);
    int label = 0;
    while (label + 1 < n_labels && scores[label] < best) ++label;
    return label;
}

}  // namespace maxmargin
