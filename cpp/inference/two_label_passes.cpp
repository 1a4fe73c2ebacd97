// Passes over graphs whose nodes all have two labels: a message is one number, m = M(1) − M(0).
//
// Let p be the difference of the sender's scores and the table be [[a, b], [c, d]], rows the sender's labels. Then
//
//     m = max(b, p + d) − max(a, p + c) = shift + sign · clamp(p, low, high),
//
// with sign the sign of a + d − b − c, low and high the smaller and larger of a − c and b − d, shift = d − a or b − c: no
// comparison decides the way, and m is b − a where the sender's label is 0 for sure, d − c where it is 1.
#include <algorithm>
#include <utility>
#include <vector>

#include "inference/extremes.hpp"
#include "inference/message_passes.hpp"
#include "inference/messages.hpp"
#include "inference/pace.hpp"

namespace maxmargin {

namespace {

// A link in one direction.
struct Step {
    double sign, shift, low, high;
    double zero;  // a − c: the message to label 0 is a + max(0, p − zero)

    // The table, rows the sender's labels.
    Step(double a, double b, double c, double d)
        : sign(a + d >= b + c ? 1.0 : -1.0), shift(sign > 0.0 ? d - a : b - c), low(smaller(a - c, b - d)), high(larger(a - c, b - d)), zero(a - c) {}
    double message(double p) const { return shift + sign * smaller(larger(p, low), high); }
    double message_of_label(bool is_one) const { return shift + sign * (is_one ? high : low); }
};

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
        up_.clear();
        down_.clear();
        for (const auto& link : graph_.links) {
            const LinkScores scores = links.scores(link.link);
            const double a = pair_score(scores, 0, 0), d = pair_score(scores, 1, 1);
            double b = pair_score(scores, 0, 1), c = pair_score(scores, 1, 0);
            if (!link.low_is_first) std::swap(b, c);
            up_.emplace_back(a, b, c, d);
            down_.emplace_back(a, c, b, d);
            all_zero_ += a;
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
                below += messages_[l];
                const bool is_one = labels[low_[l]] != 0;
                taken += up_[l].message_of_label(is_one);
                score -= is_one ? up_[l].zero : 0.0;
            }
            const bool takes_one = taken + above > 0.0;
            labels[p] = takes_one;
            score += takes_one ? taken : 0.0;
            const double shared = graph_.share[p] * (above + below);
            for (int64_t l = up; l < up_end; ++l) messages_[l] = up_[l].message(shared - messages_[l]);
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
            bound += graph_.n_beginning[p] * larger(shared, 0.0);
            for (int64_t k = down; k < down_end; ++k) {
                const int64_t l = graph_.down[k];
                const double rest = shared - messages_[l];
                // The message to label 0 less a, as the a are in all_zero_.
                bound += larger(rest - down_[l].zero, 0.0);
                messages_[l] = down_[l].message(rest);
            }
            pace.work(8 * (up_end - up + down_end - down));
        }
        return bound;
    }

   private:
    const OrderedGraph& graph_;
    std::vector<double> unary_;  // score of label 1 less that of label 0
    std::vector<Step> up_, down_;
    std::vector<int32_t> low_;
    double all_zero_ = 0.0;  // score of the labelling of zeros
    std::vector<double> messages_;
};

}  // namespace

std::unique_ptr<MessagePasses> make_two_label_passes(const OrderedGraph& graph) { return std::make_unique<TwoLabelPasses>(graph); }

}  // namespace maxmargin
