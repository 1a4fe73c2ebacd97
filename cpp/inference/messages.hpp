// What one end of a link tells the other: the best it can reach for each label of the other end.
#pragma once

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

// The first label with the largest score.
inline int best_label(const double* scores, int n_labels) {
    int best = 0;
    for (int label = 1; label < n_labels; ++label)
        if (scores[label] > scores[best]) best = label;
    return best;
}

}  // namespace maxmargin
