#include "inference/message_passes.hpp"

#include <algorithm>
#include <vector>

#include "inference/messages.hpp"
#include "inference/pace.hpp"

namespace maxmargin {

namespace {

class TablePasses final : public MessagePasses {
   public:
    explicit TablePasses(const OrderedGraph& graph) : graph_(graph) {
        int most_labels = 1;
        for (int64_t p = 0; p < graph.n_nodes(); ++p) most_labels = std::max(most_labels, graph.n_labels(p));
        for (const auto& link : graph.links) {
            begin_.push_back(n_messages_);
            n_messages_ += std::max(graph.n_labels(link.low), graph.n_labels(link.high));
        }
        sum_.resize(most_labels);
        rest_.resize(most_labels);
        given_.resize(most_labels);
        messages_.assign(n_messages_, 0.0);
    }

    void reset() override { std::fill(messages_.begin(), messages_.end(), 0.0); }

    void set_scores(const double* unary, const PairLinks& links) override {
        unary_.assign(unary, unary + graph_.label_begin.back());
        link_scores_.clear();
        for (const auto& link : graph_.links) link_scores_.push_back(links.scores(link.link));
    }

    double forward(int32_t* labels) override {
        double score = 0.0;
        Pace pace;
        for (int64_t p = 0; p < graph_.n_nodes(); ++p) {
            sum_from_above(p);
            score += take_label(p, labels);
            add_from_below(p);
            for (int64_t l = graph_.up_begin[p]; l < graph_.up_begin[p + 1]; ++l) {
                send_normalised(l, p, graph_.links[l].high, graph_.links[l].low_is_first ? Toward::second : Toward::first);
                pace.work(cost(l));
            }
        }
        return score;
    }

    double backward() override {
        double bound = 0.0;
        Pace pace;
        for (int64_t p = graph_.n_nodes() - 1; p >= 0; --p) {
            sum_from_above(p);
            add_from_below(p);
            if (graph_.n_beginning[p] > 0) bound += graph_.n_beginning[p] * graph_.share[p] * sum_[best_label(sum_.data(), graph_.n_labels(p))];
            for (int64_t k = graph_.down_begin[p]; k < graph_.down_begin[p + 1]; ++k) {
                const int64_t l = graph_.down[k];
                bound += send_normalised(l, p, graph_.links[l].low, graph_.links[l].low_is_first ? Toward::first : Toward::second);
                pace.work(cost(l));
            }
        }
        return bound;
    }

   private:
    int64_t cost(int64_t l) const {
        const LinkScores& link = link_scores_[l];
        return link.table ? static_cast<int64_t>(link.n_first) * link.n_second : link.n_first + link.n_second;
    }

    void add_message(int64_t l, int n) {
        const double* message = messages_.data() + begin_[l];
        for (int k = 0; k < n; ++k) sum_[k] += message[k];
    }

    void sum_from_above(int64_t p) {
        const int n = graph_.n_labels(p);
        std::copy_n(unary_.data() + graph_.label_begin[p], n, sum_.data());
        for (int64_t l = graph_.up_begin[p]; l < graph_.up_begin[p + 1]; ++l) add_message(l, n);
    }

    void add_from_below(int64_t p) {
        const int n = graph_.n_labels(p);
        for (int64_t k = graph_.down_begin[p]; k < graph_.down_begin[p + 1]; ++k) add_message(graph_.down[k], n);
    }

    // Returns what the label scores together with those below it.
    double take_label(int64_t p, int32_t* labels) {
        const int n = graph_.n_labels(p);
        std::copy_n(sum_.data(), n, given_.data());
        for (int64_t k = graph_.down_begin[p]; k < graph_.down_begin[p + 1]; ++k) {
            const auto& link = graph_.links[graph_.down[k]];
            add_given(link_scores_[graph_.down[k]], link.low_is_first ? Toward::second : Toward::first, labels[link.low], given_.data());
        }
        const int label = best_label(given_.data(), n);
        labels[p] = label;
        double score = unary_[graph_.label_begin[p] + label];
        for (int64_t k = graph_.down_begin[p]; k < graph_.down_begin[p + 1]; ++k) {
            const auto& link = graph_.links[graph_.down[k]];
            const int below = labels[link.low];
            score += pair_score(link_scores_[graph_.down[k]], link.low_is_first ? below : label, link.low_is_first ? label : below);
        }
        return score;
    }

    // Replaces the message that came to p over the link by the one that leaves it; returns the constant taken off.
    double send_normalised(int64_t l, int64_t from, int64_t to, Toward toward) {
        double* message = messages_.data() + begin_[l];
        const int n_from = graph_.n_labels(from), n_to = graph_.n_labels(to);
        const double share = graph_.share[from];
        for (int k = 0; k < n_from; ++k) rest_[k] = share * sum_[k] - message[k];
        send(link_scores_[l], toward, rest_.data(), message);
        const double constant = message[0];
        for (int k = 0; k < n_to; ++k) message[k] -= constant;
        return constant;
    }

    const OrderedGraph& graph_;
    std::vector<double> unary_;
    std::vector<LinkScores> link_scores_;
    int64_t n_messages_ = 0;
    std::vector<int64_t> begin_;  // of a link's message: as long as the larger number of labels of its ends
    std::vector<double> messages_;
    std::vector<double> sum_, rest_, given_;  // of one node
};

}  // namespace

std::unique_ptr<MessagePasses> make_passes(const OrderedGraph& graph) {
    for (int64_t p = 0; p < graph.n_nodes(); ++p)
        if (graph.n_labels(p) != 2) return std::make_unique<TablePasses>(graph);
    return make_two_label_passes(graph);
}

}  // namespace maxmargin
