// One of k classes, Ψ(x, y) = x ⊗ e_y (Crammer and Singer 2001). Codes: the class number. No table.
#pragma once

#include <algorithm>
#include <numeric>

#include "structures/structure.hpp"

namespace maxmargin {

class Multiclass final : public Structure {
  public:
    Multiclass(int64_t n, int n_labels, const int32_t* truth, NodeLoss loss)
        : n_(n), n_labels_(n_labels), truth_(truth), loss_(loss) {}

    int64_t n_examples() const override { return n_; }
    int n_labels() const override { return n_labels_; }
    int64_t n_table() const override { return 0; }
    RowRange rows(int64_t example) const override { return {example, example + 1}; }
    int64_t code_length(int64_t) const override { return 1; }
    bool has_truth() const override { return truth_ != nullptr; }

    void search(int64_t example, PartScores<float> scores, Search kind, SearchMemory<float>&, int32_t* code) const override {
        *code = best(example, scores.node, kind);
    }
    void search(int64_t example, PartScores<double> scores, Search kind, SearchMemory<double>&, int32_t* code) const override {
        *code = best(example, scores.node, kind);
    }
    bool is_truth(int64_t example, const int32_t* code) const override { return *code == truth_[example]; }
    double loss(int64_t example, const int32_t* code) const override { return loss_(example, truth_[example], *code, n_labels_); }
    const int32_t* true_code(int64_t example) const override { return truth_ + example; }
    void between(int64_t example, const int32_t* right, const int32_t* code, Parts& parts) const override {
        if (*right == *code) return;
        parts.nodes.push_back({example, *right, 1});
        parts.nodes.push_back({example, *code, -1});
    }

    bool has_places() const override { return true; }
    double loss_at(int64_t example, int64_t, int32_t label) const override { return loss_(example, truth_[example], label, n_labels_); }

    double score(int64_t, PartScores<double> scores, const int32_t* code) const override { return scores.node[*code]; }

    bool has_k_best() const override { return true; }
    void k_best(int64_t, PartScores<double> scores, int64_t k, std::vector<int32_t>& codes, std::vector<double>& values) const override {
        codes.resize(n_labels_);
        std::iota(codes.begin(), codes.end(), 0);
        const auto kept = std::min<int64_t>(k, n_labels_);
        // Of equal scores the first class comes first, as in the search for the best one.
        const auto better = [&](int32_t a, int32_t b) { return scores.node[a] != scores.node[b] ? scores.node[a] > scores.node[b] : a < b; };
        std::partial_sort(codes.begin(), codes.begin() + kept, codes.end(), better);
        codes.resize(kept);
        values.clear();
        for (const int32_t label : codes) values.push_back(scores.node[label]);
    }

    std::optional<RowLabels> row_labels() const override {
        if (!truth_) return std::nullopt;
        return RowLabels{truth_, false, {}, loss_};
    }

    bool has_line_slope() const override { return true; }
    double line_slope(int64_t first, int64_t end, Line line, Search kind, const double* sample_weight) const override {
        double sum = 0.0;
        for (int64_t i = first; i < end; ++i) {
            const int64_t row = (i - first) * line.stride;
            const int32_t truth = truth_[i];
            const double true_score = line.score(row + truth);
            double best_value = 0.0, slope = 0.0;
            for (int32_t k = 0; k < n_labels_; ++k) {
                const double delta = loss_(i, truth, k, n_labels_), scale = kind == Search::slack ? delta : 1.0;
                const double value = delta + scale * (line.score(row + k) - true_score);
                if (value <= best_value) continue;
                best_value = value;
                slope = scale * (line.change(row + k) - line.change(row + truth));
            }
            sum += (sample_weight ? sample_weight[i] : 1.0) * slope;
        }
        return sum;
    }

  private:
    // Ties with the truth go to the truth: a plane of value 0 is worth nothing.
    template <class Scalar>
    int32_t best(int64_t example, const Scalar* scores, Search kind) const {
        if (kind == Search::plain) {
            int32_t label = 0;
            for (int32_t k = 1; k < n_labels_; ++k)
                if (scores[k] > scores[label]) label = k;
            return label;
        }
        const int32_t truth = truth_[example];
        int32_t label = truth;
        double best_value = 0.0;
        for (int32_t k = 0; k < n_labels_; ++k) {
            const double delta = loss_(example, truth, k, n_labels_);
            const double difference = static_cast<double>(scores[k]) - static_cast<double>(scores[truth]);
            const double value = kind == Search::margin ? delta + difference : delta * (1.0 + difference);
            if (value > best_value) {
                best_value = value;
                label = k;
            }
        }
        return label;
    }

    int64_t n_;
    int n_labels_;
    const int32_t* truth_;
    NodeLoss loss_;
};

}  // namespace maxmargin
