// Two classes, Ψ(x, y) = ½ y x with y = ±1 (Joachims, Finley and Yu 2009, section 5; SVM-perf). Codes: −1 or +1. One label column, no table.
#pragma once

#include "structures/structure.hpp"

namespace maxmargin {

class Binary final : public Structure {
  public:
    // truth: n signs, or null when only prediction is asked for. cost[0]: a −1 taken for +1; cost[1]: a +1 taken for −1.
    Binary(int64_t n, const int32_t* truth, double cost_of_negative, double cost_of_positive)
        : n_(n), truth_(truth), cost_{cost_of_negative, cost_of_positive} {}

    int64_t n_examples() const override { return n_; }
    int n_labels() const override { return 1; }
    int64_t n_table() const override { return 0; }
    RowRange rows(int64_t example) const override { return {example, example + 1}; }
    int64_t code_length(int64_t) const override { return 1; }
    bool has_truth() const override { return truth_ != nullptr; }
    bool is_code(int64_t, std::span<const int32_t> numbers) const override {
        return numbers.size() == 1 && (numbers[0] == 1 || numbers[0] == -1);
    }

    void search(int64_t example, PartScores<float> scores, Search kind, SearchMemory<float>&, int32_t* code) const override {
        *code = best(example, *scores.node, kind);
    }
    void search(int64_t example, PartScores<double> scores, Search kind, SearchMemory<double>&, int32_t* code) const override {
        *code = best(example, *scores.node, kind);
    }
    bool is_truth(int64_t example, const int32_t* code) const override { return *code == truth_[example]; }
    double loss(int64_t example, const int32_t* code) const override { return is_truth(example, code) ? 0.0 : cost(example); }
    const int32_t* true_code(int64_t example) const override { return truth_ + example; }
    // ½ y x − ½ (−y) x = y x
    void between(int64_t example, const int32_t* right, const int32_t* code, Parts& parts) const override {
        if (*right != *code) parts.nodes.push_back({example, 0, *right});
    }

    bool has_k_best() const override { return true; }
    void k_best(int64_t example, PartScores<double> scores, int64_t k, std::vector<int32_t>& codes, std::vector<double>& values) const override {
        const int32_t first = best(example, *scores.node, Search::plain);
        // Ψ = ½ y x: the two scores are half of the difference that the label is decided by.
        const double half = 0.5 * *scores.node * first;
        codes.assign({first, -first});
        values.assign({half, -half});
        if (k < 2) codes.pop_back(), values.pop_back();
    }

    std::optional<RowLabels> row_labels() const override {
        if (!truth_) return std::nullopt;
        return RowLabels{truth_, true, {cost_[0], cost_[1]}, {}};
    }

    bool has_line_slope() const override { return true; }
    double line_slope(int64_t first, int64_t end, Line line, Search kind, const double* sample_weight) const override {
        double sum = 0.0;
        for (int64_t i = first; i < end; ++i) {
            const int64_t j = i - first;
            const double y = truth_[i], scale = kind == Search::slack ? cost(i) : 1.0;
            const double change = (sample_weight ? sample_weight[i] : 1.0) * scale * y * line.change(j);
            sum -= cost(i) - scale * y * line.score(j) > 0.0 ? change : 0.0;
        }
        return sum;
    }

  private:
    double cost(int64_t example) const { return cost_[truth_[example] > 0]; }

    // The wrong label wins when its plane's value is positive: Δ − y s (margin) or Δ (1 − y s) (slack).
    int32_t best(int64_t example, double score, Search kind) const {
        if (kind == Search::plain) return score > 0.0 ? 1 : -1;
        const double margin = truth_[example] * score;
        const double value = kind == Search::margin ? cost(example) - margin : cost(example) * (1.0 - margin);
        return value > 0.0 ? -truth_[example] : truth_[example];
    }

    int64_t n_;
    const int32_t* truth_;
    double cost_[2];
};

}  // namespace maxmargin
