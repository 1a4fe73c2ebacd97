// Passes over graphs whose nodes all have two labels: a message is one number, m = M(1) − M(0).
//
// Let p be the difference of the sender's scores and the table be [[a, b], [c, d]], rows the sender's labels. Then
//
//     m = max(b, p + d) − max(a, p + c) = shift + sign · clamp(p, low, high),
//
// with sign the sign of a + d − b − c, low and high the smaller and larger of a − c and b − d, shift = d − a or b − c: no
// comparison decides the way, and m is b − a where the sender's label is 0 for sure, d − c where it is 1.
#include <algorithm>
#include <vector>

#include "inference/message_passes.hpp"
#include "inference/messages.hpp"
#include "inference/pace.hpp"

namespace maxmargin {

namespace {

struct Step {
    double shift, low, high;
    double message(double sign, double p) const { return shift + sign * std::min(std::max(p, low), high); }
};

struct TwoLabelLink {
    double sign;
    Step up, down;
    double both_zero;  // score of labels 0 and 0
};

TwoLabelLink make_link(double a, double b, double c, double d) {
    const bool likes_equal = a + d >= b + c;
    return {likes_equal ? 1.0 : -1.0,
            {likes_equal ? d - a : b - c, std::min(a - c, b - d), std::max(a - c, b - d)},
            {likes_equal ? d - a : c - b, std::min(a - b, c - d), std::max(a - b, c - d)},
            a};
}

class TwoLabelPasses final : public MessagePasses {
   public:
    explicit TwoLabelPasses(const OrderedGraph& graph) : graph_(graph), messages_(graph.links.size(), 0.0) {
        for (const auto& link : graph.links) low_.push_back(link.low);
    }

    void reset() override { std::fill(messages_.begin(), messages_.end(), 0.0); }

    void set_scores(const double* unary, const PairLinks& links) override {
        unary_.resize(graph_.n_nodes());
        all_zero_ = 0.0;
        for (int64_t p = 0; p < graph_.n_nodes(); ++p) {
            unary_[p] = unary[2 * p + 1] - unary[2 * p];
            all_zero_ += unary[2 * p];
        }
        links_.clear();
        for (const auto& link : graph_.links) {
            const LinkScores scores = links.scores(link.link);
            const double b = pair_score(scores, 0, 1), c = pair_score(scores, 1, 0);
            links_.push_back(make_link(pair_score(scores, 0, 0), link.low_is_first ? b : c, link.low_is_first ? c : b, pair_score(scores, 1, 1)));
            all_zero_ += links_.back().both_zero;
        }
    }

    double forward(int32_t* labels) override {
        double score = all_zero_;
        Pace pace;
        for (int64_t p = 0; p < graph_.n_nodes(); ++p) {
            const int64_t up = graph_.up_begin[p], up_end = graph_.up_begin[p + 1];
            const int64_t down = graph_.down_begin[p], down_end = graph_.down_begin[p + 1];
            double above = 0.0, below = unary_[p], taken = unary_[p];
            for (int64_t l = up; l < up_end; ++l) above += messages_[l];
            for (int64_t k = down; k < down_end; ++k) {
                const int64_t l = graph_.down[k];
                const TwoLabelLink& link = links_[l];
                below += messages_[l];
                // The label below is certain.
                const bool is_one = labels[low_[l]] != 0;
                taken += link.up.shift + link.sign * (is_one ? link.up.high : link.up.low);
                score -= is_one ? (link.sign > 0.0 ? link.up.high : link.up.low) : 0.0;
            }
            const bool takes_one = taken + above > 0.0;
            labels[p] = takes_one;
            score += takes_one ? taken : 0.0;
            const double shared = graph_.share[p] * (above + below);
            for (int64_t l = up; l < up_end; ++l) messages_[l] = links_[l].up.message(links_[l].sign, shared - messages_[l]);
            pace.work(8 * (up_end - up + down_end - down));
        }
        return score;
    }

    double backward() override {
        double bound = all_zero_;
        Pace pace;
        for (int64_t p = graph_.n_nodes() - 1; p >= 0; --p) {
            const int64_t up = graph_.up_begin[p], up_end = graph_.up_begin[p + 1];
            const int64_t down = graph_.down_begin[p], down_end = graph_.down_begin[p + 1];
            double sum = unary_[p];
            for (int64_t k = down; k < down_end; ++k) sum += messages_[graph_.down[k]];
            for (int64_t l = up; l < up_end; ++l) sum += messages_[l];
            const double shared = graph_.share[p] * sum;
            bound += graph_.n_beginning[p] * std::max(shared, 0.0);
            for (int64_t k = down; k < down_end; ++k) {
                const int64_t l = graph_.down[k];
                const TwoLabelLink& link = links_[l];
                const double rest = shared - messages_[l];
                // The message to label 0: max(a, rest + b) − a, as the a are in all_zero_.
                bound += std::max(rest - (link.sign > 0.0 ? link.down.high : link.down.low), 0.0);
                messages_[l] = link.down.message(link.sign, rest);
            }
            pace.work(8 * (up_end - up + down_end - down));
        }
        return bound;
    }

   private:
    const OrderedGraph& graph_;
    std::vector<double> unary_;  // score of label 1 less that of label 0
    std::vector<TwoLabelLink> links_;
    std::vector<int32_t> low_;
    double all_zero_ = 0.0;  // score of the labelling of zeros
    std::vector<double> messages_;
};

}  // namespace

std::unique_ptr<MessagePasses> make_two_label_passes(const OrderedGraph& graph) { return std::make_unique<TwoLabelPasses>(graph); }

}  // namespace maxmargin
