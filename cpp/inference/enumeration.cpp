#include "inference/enumeration.hpp"

#include <algorithm>
#include <limits>

#include "inference/messages.hpp"
#include "inference/pace.hpp"

namespace maxmargin {

namespace {
constexpr double minus_infinity = -std::numeric_limits<double>::infinity();
}

int64_t count_labellings(const GraphShape& shape) {
    int64_t count = 1;
    for (int64_t i = 0; i < shape.n_nodes; ++i) {
        if (shape.n_labels(i) > most_enumerated / count) return most_enumerated + 1;
        count *= shape.n_labels(i);
    }
    return count;
}

EnumerationSearch::EnumerationSearch(const GraphShape& shape, const PairScores& pairs)
    : shape_(shape), pairs_(pairs), links_(shape), scores_(shape.label_offsets[shape.n_nodes]) {
    links_.set_scores(shape, pairs);
}

void EnumerationSearch::score_labels(int64_t node, const double* unary, double so_far, const int32_t* labels) {
    const int64_t begin = shape_.label_offsets[node];
    const int n = shape_.n_labels(node);
    double* scores = scores_.data() + begin;
    for (int k = 0; k < n; ++k) scores[k] = so_far + unary[begin + k];
    for (int64_t j = links_.incident_begin()[node]; j < links_.incident_begin()[node + 1]; ++j) {
        const int64_t link = links_.incident()[j];
        const int32_t before = links_.other(link, static_cast<int32_t>(node));
        if (before < node) add_given(links_.scores(link), links_.second(link) == node ? Toward::second : Toward::first, labels[before], scores);
    }
}

// A walk over the tree of choices: depth is the node that is to take its next label. `reached[d]` is the best score found
// below the present label of node d − 1, which makes max-marginals cost no more than the best labelling does.
void EnumerationSearch::enumerate(const double* unary, double* max_marginals, int32_t* labels) {
    const int64_t last = shape_.n_nodes - 1;
    std::vector<int32_t> now(shape_.n_nodes, -1);
    std::vector<double> reached(shape_.n_nodes + 1, minus_infinity);
    double best = minus_infinity;
    Pace pace;
    if (max_marginals) std::fill_n(max_marginals, shape_.label_offsets[shape_.n_nodes], minus_infinity);
    const auto note = [&](int64_t node, int label, double score) {
        reached[node] = std::max(reached[node], score);
        double* at = max_marginals ? max_marginals + shape_.label_offsets[node] + label : nullptr;
        if (at) *at = std::max(*at, score);
    };
    if (last >= 0) score_labels(0, unary, 0.0, now.data());
    for (int64_t node = 0; node >= 0 && last >= 0;) {
        const double* scores = scores_.data() + shape_.label_offsets[node];
        const int n = shape_.n_labels(node);
        pace.work(64);
        if (node == last) {
            const int label = best_label(scores, n);
            if (scores[label] > best) {
                best = scores[label];
                now[last] = label;
                std::copy(now.begin(), now.end(), labels);
            }
            if (max_marginals)
                for (int k = 0; k < n; ++k) note(last, k, scores[k]);
            else reached[last] = scores[label];
            now[last] = n;
        }
        int32_t& label = now[node];
        do ++label;
        while (label < n && scores[label] == minus_infinity);
        if (label < n) {
            score_labels(node + 1, unary, scores[label], now.data());
            ++node;
            continue;
        }
        label = -1;
        if (node > 0) note(node - 1, now[node - 1], reached[node]);
        reached[node] = minus_infinity;
        --node;
    }
}

Found EnumerationSearch::best(const double* unary, int32_t* labels) {
    enumerate(unary, nullptr, labels);
    const double score = total_score(shape_, unary, pairs_, labels);
    return {score, score, true};
}

void EnumerationSearch::max_marginals(const double* unary, double* out) {
    std::vector<int32_t> labels(shape_.n_nodes);
    enumerate(unary, out, labels.data());
}

}  // namespace maxmargin
