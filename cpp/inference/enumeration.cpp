#include "inference/enumeration.hpp"

#include <algorithm>
#include <limits>

#include "inference/messages.hpp"
#include "inference/pace.hpp"

namespace maxmargin {

namespace {
constexpr double minus_infinity = -std::numeric_limits<double>::infinity();
}

int64_t count_enumerated(const GraphShape& shape) {
    int64_t count = 0, labellings = 1;
    for (int64_t i = 0; i < shape.n_nodes; ++i) {
        if (shape.n_labels(i) > (most_enumerated - count) / labellings) return most_enumerated + 1;
        labellings *= shape.n_labels(i);
        count += labellings;
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

// A walk over the tree of choices, without recursion as graphs may have many nodes of one label. chosen(node, label) is called on the
// way down, at_last(scores) with the scores of the last node's labels given those of all others, and leave(node) when all labels of
// a node have been tried. now[node] is the label that the node has.
template <class Chosen, class AtLast, class Leave>
void EnumerationSearch::walk(const double* unary, std::vector<int32_t>& now, Chosen&& chosen, AtLast&& at_last, Leave&& leave) {
    const int64_t last = shape_.n_nodes - 1;
    now.assign(shape_.n_nodes, -1);
    Pace pace;
    if (last >= 0) score_labels(0, unary, 0.0, now.data());
    for (int64_t node = std::min<int64_t>(last, 0); node >= 0; --node) {
        const double* scores = scores_.data() + shape_.label_offsets[node];
        // Down to the last node, over the next label that is not forbidden of each.
        for (; node < last; scores = scores_.data() + shape_.label_offsets[node]) {
            const int n = shape_.n_labels(node);
            do ++now[node];
            while (now[node] < n && scores[now[node]] == minus_infinity);
            if (now[node] == n) break;
            chosen(node, now[node]);
            score_labels(node + 1, unary, scores[now[node]], now.data());
            ++node;
            pace.work(64);
        }
        if (node == last) at_last(scores);
        now[node] = -1;
        leave(node);
    }
}

// `reached` is the best score found below the present label of the node before: with it, max-marginals cost no more than the best
// labelling does.
void EnumerationSearch::enumerate(const double* unary, double* max_marginals, int32_t* labels) {
    const int64_t last = shape_.n_nodes - 1;
    std::vector<int32_t> now;
    std::vector<double> reached(shape_.n_nodes, minus_infinity);
    double best = minus_infinity;
    if (max_marginals) std::fill_n(max_marginals, shape_.label_offsets[shape_.n_nodes], minus_infinity);
    const auto note = [&](int64_t node, int label, double score) {
        reached[node] = std::max(reached[node], score);
        if (!max_marginals) return;
        double& of_label = max_marginals[shape_.label_offsets[node] + label];
        of_label = std::max(of_label, score);
    };
    const auto at_last = [&](const double* scores) {
        now[last] = best_label(scores, shape_.n_labels(last));
        if (scores[now[last]] > best) {
            best = scores[now[last]];
            std::copy(now.begin(), now.end(), labels);
        }
        for (int k = 0; k < shape_.n_labels(last); ++k) note(last, k, scores[k]);
    };
    const auto leave = [&](int64_t node) {
        if (node > 0) note(node - 1, now[node - 1], reached[node]);
        reached[node] = minus_infinity;
    };
    walk(unary, now, [](int64_t, int32_t) {}, at_last, leave);
}

bool EnumerationSearch::best_product(const double* unary, const double* losses, double true_score, int32_t* labels) {
    const int64_t last = shape_.n_nodes - 1;
    std::vector<int32_t> now;
    std::vector<double> loss_before(shape_.n_nodes, 0.0);  // of the nodes before each
    double best = 0.0;
    const auto chosen = [&](int64_t node, int32_t label) { loss_before[node + 1] = loss_before[node] + losses[shape_.label_offsets[node] + label]; };
    const auto at_last = [&](const double* scores) {
        for (int k = 0; k < shape_.n_labels(last); ++k) {
            const double value = (loss_before[last] + losses[shape_.label_offsets[last] + k]) * (1.0 + scores[k] - true_score);
            if (!(value > best)) continue;
            best = value;
            now[last] = k;
            std::copy(now.begin(), now.end(), labels);
        }
    };
    walk(unary, now, chosen, at_last, [](int64_t) {});
    return best > 0.0;
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
