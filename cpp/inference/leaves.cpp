#include "inference/leaves.hpp"

#include <algorithm>

#include "inference/messages.hpp"
#include "inference/pace.hpp"

namespace maxmargin {

namespace {

int64_t cost(const LinkScores& link) { return link.table ? static_cast<int64_t>(link.n_first) * link.n_second : link.n_first + link.n_second; }

}  // namespace

Leaves::Leaves(const GraphShape& shape, const PairLinks& links) : Leaves(shape, links, std::vector<char>(shape.n_nodes, 1)) {}

Leaves::Leaves(const GraphShape& shape, const PairLinks& links, const std::vector<char>& is_member) {
    const auto& begin = links.incident_begin();
    std::vector<int64_t> degree(shape.n_nodes);
    std::vector<char> is_taken(shape.n_nodes, 0);
    std::vector<int32_t> waiting;
    for (int32_t i = 0; i < shape.n_nodes; ++i) {
        is_taken[i] = !is_member[i];
        if (is_taken[i]) continue;
        for (int64_t k = begin[i]; k < begin[i + 1]; ++k) degree[i] += is_member[links.other(links.incident()[k], i)] != 0;
        if (degree[i] <= 1) waiting.push_back(i);
        most_labels_ = std::max(most_labels_, shape.n_labels(i));
    }
    for (size_t next = 0; next < waiting.size(); ++next) {
        const int32_t node = waiting[next];
        is_taken[node] = 1;
        Leaf leaf{node, -1, -1, message_size_};
        for (int64_t k = begin[node]; k < begin[node + 1]; ++k) {
            const int32_t neighbour = links.other(links.incident()[k], node);
            if (is_taken[neighbour]) continue;
            leaf = {node, neighbour, links.incident()[k], message_size_};
            if (--degree[neighbour] == 1) waiting.push_back(neighbour);
        }
        if (leaf.neighbour >= 0) message_size_ += shape.n_labels(leaf.neighbour);
        leaves_.push_back(leaf);
    }
    for (int64_t i = 0; i < shape.n_nodes; ++i)
        if (!is_taken[i]) core_.push_back(static_cast<int32_t>(i));
}

double Leaves::eliminate(const GraphShape& shape, const PairLinks& links, double* scores, double* messages) const {
    std::vector<double> own(messages ? 0 : most_labels_);
    double best_of_trees = 0.0;
    Pace pace;
    for (const Leaf& leaf : leaves_) {
        const double* of_leaf = scores + shape.label_offsets[leaf.node];
        if (leaf.neighbour < 0) {
            best_of_trees += best_score(of_leaf, shape.n_labels(leaf.node));
            continue;
        }
        double* message = messages ? messages + leaf.message_begin : own.data();
        double* of_neighbour = scores + shape.label_offsets[leaf.neighbour];
        const LinkScores link = links.scores(leaf.link);
        send(link, toward(links, leaf.link, leaf.neighbour), of_leaf, message);
        for (int k = 0; k < shape.n_labels(leaf.neighbour); ++k) of_neighbour[k] += message[k];
        pace.work(cost(link));
    }
    return best_of_trees;
}

void Leaves::extend(const GraphShape& shape, const PairLinks& links, const double* scores, int32_t* labels) const {
    std::vector<double> given(most_labels_);
    for (auto leaf = leaves_.rbegin(); leaf != leaves_.rend(); ++leaf) {
        const int n = shape.n_labels(leaf->node);
        std::copy_n(scores + shape.label_offsets[leaf->node], n, given.data());
        if (leaf->neighbour >= 0) add_given(links.scores(leaf->link), toward(links, leaf->link, leaf->node), labels[leaf->neighbour], given.data());
        labels[leaf->node] = best_label(given.data(), n);
    }
}

double Leaves::score(const GraphShape& shape, const PairLinks& links, const double* scores, const int32_t* labels) const {
    double sum = 0.0;
    for (const Leaf& leaf : leaves_) {
        sum += scores[shape.label_offsets[leaf.node] + labels[leaf.node]];
        if (leaf.neighbour >= 0) sum += pair_score(links.scores(leaf.link), labels[links.first(leaf.link)], labels[links.second(leaf.link)]);
    }
    return sum;
}

void Leaves::max_marginals(const GraphShape& shape, const PairLinks& links, const double* scores, const double* messages, double best, double* out) const {
    std::vector<double> without(most_labels_), message(most_labels_);
    Pace pace;
    for (auto leaf = leaves_.rbegin(); leaf != leaves_.rend(); ++leaf) {
        double* of_leaf = out + shape.label_offsets[leaf->node];
        const int n = shape.n_labels(leaf->node);
        std::copy_n(scores + shape.label_offsets[leaf->node], n, of_leaf);
        if (leaf->neighbour < 0) continue;
        const double* of_neighbour = out + shape.label_offsets[leaf->neighbour];
        const double* sent = messages + leaf->message_begin;
        for (int k = 0; k < shape.n_labels(leaf->neighbour); ++k) without[k] = of_neighbour[k] - sent[k];
        const LinkScores link = links.scores(leaf->link);
        send(link, toward(links, leaf->link, leaf->node), without.data(), message.data());
        for (int k = 0; k < n; ++k) of_leaf[k] += message[k];
        pace.work(cost(link));
    }
    // So far up to a constant for each tree, the largest of which stands for the best score.
    for (int64_t i = 0; i < shape.n_nodes; ++i) {
        double* of_node = out + shape.label_offsets[i];
        const int n = shape.n_labels(i);
        const double others = best - best_score(of_node, n);
        for (int k = 0; k < n; ++k) of_node[k] += others;
    }
}

}  // namespace maxmargin
