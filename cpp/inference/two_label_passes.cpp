// Passes over graphs whose nodes all have two labels: a message is one number, m = M(1) − M(0).
//
// Let p be the difference of the sender's scores and the table be [[a, b], [c, d]], rows the sender's labels. Then
//
//     m = max(b, p + d) − max(a, p + c),
//
// and what is subtracted is the message to label 0, which the bound counts. Two things make passes fast: labels and maxima, which
// cannot be predicted, decide no branch; and a message is added to its receiver's sum when it is sent, so that a node is one loop
// over the links of one side.
#include <algorithm>
#include <utility>
#include <vector>

#include "inference/extremes.hpp"
#include "inference/message_passes.hpp"
#include "inference/messages.hpp"
#include "inference/pace.hpp"

namespace maxmargin {

namespace {

// Scores of the labels of a link, the lower end's label first.
struct Table {
    double scores[2][2];
};

class TwoLabelPasses final : public MessagePasses {
   public:
    explicit TwoLabelPasses(const OrderedGraph& graph)
        : graph_(graph), above_(graph.n_nodes(), 0.0), below_(graph.n_nodes()), taken_(graph.n_nodes()), messages_(graph.links.size(), 0.0) {
        for (const auto& link : graph.links) high_.push_back(link.high);
        for (const int64_t l : graph.down) down_.push_back({l, graph.links[l].low});
    }

    void reset() override {
        std::fill(messages_.begin(), messages_.end(), 0.0);
        std::fill(above_.begin(), above_.end(), 0.0);
    }

    void set_scores(const double* unary, const PairLinks& links) override {
        unary_.resize(graph_.n_nodes());
        all_zero_ = 0.0;
        for (int64_t p = 0; p < graph_.n_nodes(); ++p) {
            unary_[p] = unary[2 * p + 1] - unary[2 * p];
            all_zero_ += unary[2 * p];
        }
        tables_.clear();
        for (const auto& link : graph_.links) {
            const LinkScores scores = links.scores(link.link);
            double b = pair_score(scores, 0, 1), c = pair_score(scores, 1, 0);
            if (!link.low_is_first) std::swap(b, c);
            tables_.push_back({{{pair_score(scores, 0, 0), b}, {c, pair_score(scores, 1, 1)}}});
        }
    }

    double forward(int32_t* labels) override {
        below_ = taken_ = unary_;
        double score = all_zero_;
        Message next;
        Pace pace;
        for (int64_t p = 0; p < graph_.n_nodes(); ++p) {
            const int64_t up = graph_.up_begin[p], up_end = graph_.up_begin[p + 1];
            const double shared = graph_.share[p] * (above_[p] + below_[p] + next.value);
            const bool label = taken_[p] + above_[p] + next.taken > 0.0;
            labels[p] = label;
            score += label * (taken_[p] + next.taken);
            below_[p] += next.value;
            above_[p] = 0.0;
            next = {};
            for (int64_t l = up; l < up_end; ++l) {
                const auto& table = tables_[l].scores;
                const double to_zero = larger(table[0][0], shared + (table[1][0] - messages_[l]));
                const double value = larger(table[0][1], shared + (table[1][1] - messages_[l])) - to_zero;
                const double taken = table[label][1] - table[label][0];
                messages_[l] = value;
                score += table[label][0];
                if (high_[l] == p + 1) {
                    next = {value, taken};
                } else {
                    below_[high_[l]] += value;
                    taken_[high_[l]] += taken;
                }
            }
            pace.work(8 * (up_end - up));
        }
        return score;
    }

    double backward() override {
        double bound = all_zero_;
        Message next;
        Pace pace;
        for (int64_t p = graph_.n_nodes() - 1; p >= 0; --p) {
            const int64_t down = graph_.down_begin[p], down_end = graph_.down_begin[p + 1];
            const double shared = graph_.share[p] * (above_[p] + below_[p] + next.value);
            bound += graph_.n_beginning[p] * larger(shared, 0.0);
            above_[p] += next.value;
            next = {};
            for (int64_t k = down; k < down_end; ++k) {
                const auto [l, low] = down_[k];
                const auto& table = tables_[l].scores;
                const double to_zero = larger(table[0][0], shared + (table[0][1] - messages_[l]));
                const double value = larger(table[1][0], shared + (table[1][1] - messages_[l])) - to_zero;
                messages_[l] = value;
                bound += to_zero;
                if (low == p - 1) next.value = value;
                else above_[low] += value;
            }
            pace.work(8 * (down_end - down));
        }
        return bound;
    }

    void shortfalls(double* out) const override {
        for (int64_t p = 0; p < graph_.n_nodes(); ++p) {
            const double of_one = above_[p] + below_[p];
            out[2 * p] = smaller(-of_one, 0.0);
            out[2 * p + 1] = smaller(of_one, 0.0);
        }
    }

   private:
    // What a node sends to the one that comes right after it, over the one link that there can be. That node needs the sum of its messages at
    // once, and would have to wait until the store of it can be read back; added last, this one delays a single addition.
    struct Message {
        double value = 0.0, taken = 0.0;
    };
    // A link seen from its high end.
    struct Down {
        int64_t link;
        int32_t low;
    };

    const OrderedGraph& graph_;
    std::vector<int32_t> high_;  // by link
    std::vector<Down> down_;     // as graph_.down
    std::vector<Table> tables_;
    std::vector<double> unary_;          // score of label 1 less that of label 0
    double all_zero_ = 0.0;              // scores of the nodes' labels 0
    std::vector<double> above_, below_;  // sums of the messages from above, and of those from below with the node's own scores
    std::vector<double> taken_;          // the node's own scores with those of links to labels taken below
    std::vector<double> messages_;
};

}  // namespace

std::unique_ptr<MessagePasses> make_two_label_passes(const OrderedGraph& graph) { return std::make_unique<TwoLabelPasses>(graph); }

}  // namespace maxmargin
