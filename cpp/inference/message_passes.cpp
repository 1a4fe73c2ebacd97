#include "inference/message_passes.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include "inference/messages.hpp"
#include "inference/pace.hpp"
#include "scores/fetch.hpp"

namespace maxmargin {

namespace {

// So many links before its turn a message is fetched in backward passes, where the next one may be anywhere.
constexpr int64_t ahead = 2;

class TablePasses final : public MessagePasses {
   public:
    explicit TablePasses(const OrderedGraph& graph) : graph_(graph), above_(graph.label_begin.back(), 0.0) {
        int most_labels = 1;
        for (int64_t p = 0; p < graph.n_nodes(); ++p) most_labels = std::max(most_labels, graph.n_labels(p));
        shared_.resize(most_labels);
        rest_.resize(most_labels);
        given_.resize(most_labels);
        int64_t begin = 0;
        for (const auto& link : graph.links) {
            up_.push_back({{}, begin, link.high, link.low_is_first ? Toward::second : Toward::first});
            begin += std::max(graph.n_labels(link.low), graph.n_labels(link.high));
        }
        for (const int64_t l : graph.down) down_.push_back({{}, up_[l].message, graph.links[l].low, opposite(up_[l].toward)});
        messages_.assign(begin, 0.0);
    }

    void reset() override {
        std::fill(messages_.begin(), messages_.end(), 0.0);
        std::fill(above_.begin(), above_.end(), 0.0);
    }

    void set_scores(const double* unary, const PairLinks& links) override {
        unary_.assign(unary, unary + graph_.label_begin.back());
        for (size_t l = 0; l < up_.size(); ++l) up_[l].scores = links.scores(graph_.links[l].link);
        for (size_t k = 0; k < down_.size(); ++k) down_[k].scores = up_[graph_.down[k]].scores;
    }

    double forward(int32_t* labels) override {
        below_ = unary_;
        double score = 0.0;
        Pace pace;
        for (int64_t p = 0; p < graph_.n_nodes(); ++p) {
            score += take_label(p, labels);
            share_out(p);
            std::fill_n(above_.data() + graph_.label_begin[p], graph_.n_labels(p), 0.0);
            for (int64_t l = graph_.up_begin[p]; l < graph_.up_begin[p + 1]; ++l) {
                send_normalised(up_[l], p, below_);
                pace.work(cost(up_[l].scores));
            }
        }
        return score;
    }

    double backward() override {
        double bound = 0.0;
        Pace pace;
        for (int64_t p = graph_.n_nodes() - 1; p >= 0; --p) {
            share_out(p);
            if (graph_.n_beginning[p] > 0) bound += graph_.n_beginning[p] * best_score(shared_.data(), graph_.n_labels(p));
            for (int64_t k = graph_.down_begin[p + 1] - 1; k >= graph_.down_begin[p]; --k) {
                if (k >= ahead) fetch(messages_.data() + down_[k - ahead].message, graph_.n_labels(p) * sizeof(double));
                bound += send_normalised(down_[k], p, above_);
                pace.work(cost(down_[k].scores));
            }
        }
        return bound;
    }

    void shortfalls(double* out) const override {
        for (int64_t p = 0; p < graph_.n_nodes(); ++p) {
            const int64_t begin = graph_.label_begin[p];
            const int n = graph_.n_labels(p);
            for (int k = 0; k < n; ++k) out[begin + k] = above_[begin + k] + below_[begin + k];
            const double best = best_score(out + begin, n);
            for (int k = 0; k < n; ++k) out[begin + k] -= best;
        }
    }

   private:
    // A link in one direction.
    struct Step {
        LinkScores scores;
        int64_t message;  // where it begins: it is as long as the larger number of labels of both ends
        int32_t to;       // place
        Toward toward;
    };

    static int64_t cost(const LinkScores& link) { return link.table ? static_cast<int64_t>(link.n_first) * link.n_second : link.n_first + link.n_second; }

    // What a chain has of the node's scores and the messages to it.
    void share_out(int64_t p) {
        const double *above = above_.data() + graph_.label_begin[p], *below = below_.data() + graph_.label_begin[p];
        const double share = graph_.share[p];
        for (int k = 0; k < graph_.n_labels(p); ++k) shared_[k] = share * (above[k] + below[k]);
    }

    // Returns what the label scores together with those below it.
    double take_label(int64_t p, int32_t* labels) {
        const int n = graph_.n_labels(p);
        const std::span below(down_.data() + graph_.down_begin[p], down_.data() + graph_.down_begin[p + 1]);
        const double *unary = unary_.data() + graph_.label_begin[p], *above = above_.data() + graph_.label_begin[p];
        for (int k = 0; k < n; ++k) given_[k] = unary[k] + above[k];
        for (const Step& step : below) add_given(step.scores, opposite(step.toward), labels[step.to], given_.data());
        const int label = best_label(given_.data(), n);
        labels[p] = label;
        double score = unary[label];
        for (const Step& step : below) {
            const int other = labels[step.to];
            score += step.toward == Toward::first ? pair_score(step.scores, other, label) : pair_score(step.scores, label, other);
        }
        return score;
    }

    // Replaces the message that came over the link by the one that leaves, and adds it to the sums of its receiver; returns the
    // constant taken off.
    double send_normalised(const Step& step, int64_t from, std::vector<double>& sums) {
        double *message = messages_.data() + step.message, *sum = sums.data() + graph_.label_begin[step.to];
        for (int k = 0; k < graph_.n_labels(from); ++k) rest_[k] = shared_[k] - message[k];
        send(step.scores, step.toward, rest_.data(), message);
        const double constant = message[0];
        for (int k = 0; k < graph_.n_labels(step.to); ++k) {
            message[k] -= constant;
            sum[k] += message[k];
        }
        return constant;
    }

    const OrderedGraph& graph_;
    std::vector<Step> up_, down_;  // as graph_.links and graph_.down
    std::vector<double> unary_;
    std::vector<double> above_, below_;  // sums of the messages from above, and of those from below with the nodes' own scores
    std::vector<double> messages_;
    std::vector<double> shared_, rest_, given_;  // of one node
};

}  // namespace

std::unique_ptr<MessagePasses> make_passes(const OrderedGraph& graph) {
    for (int64_t p = 0; p < graph.n_nodes(); ++p)
        if (graph.n_labels(p) != 2) return std::make_unique<TablePasses>(graph);
    return make_two_label_passes(graph);
}

}  // namespace maxmargin
