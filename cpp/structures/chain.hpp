// Label sequences with first-order transitions: Ψ = Σ_t x_t ⊗ e_{y_t} + transition counts (+ start and stop labels).
//
// Codes: one label per row. Table: transition from · n_labels + to, then n_labels start and n_labels stop weights if
// has_ends.
#pragma once

#include <vector>

#include "structures/structure.hpp"

namespace maxmargin {

struct ChainData {
    int64_t n_examples = 0;
    const int64_t* offsets = nullptr;  // n_examples + 1 row numbers
    int n_labels = 0;
    bool has_ends = false;
    const int32_t* truth = nullptr;       // one label per row, or null for prediction only
    const uint8_t* forbidden = nullptr;   // n_labels × n_labels, nonzero where from → to is illegal, or null
    NodeLoss loss;
    double loss_step = 0.0;  // every node loss is a multiple of this; 0 where slack rescaling is not asked for
};

class Chain final : public Structure {
  public:
    explicit Chain(const ChainData& data);

    int64_t n_examples() const override { return data_.n_examples; }
    int n_labels() const override { return data_.n_labels; }
    int64_t n_table() const override { return table_size(); }
    RowRange rows(int64_t example) const override { return {data_.offsets[example], data_.offsets[example + 1]}; }
    int64_t code_length(int64_t example) const override { return rows(example).length(); }
    bool has_truth() const override { return data_.truth != nullptr; }
    bool has_slack_search() const override { return data_.loss_step > 0.0; }
    bool has_places() const override { return true; }
    bool has_free_places() const override { return data_.forbidden == nullptr; }
    double loss_at(int64_t example, int64_t place, int32_t label) const override {
        return data_.loss(data_.offsets[example] + place, truth(example)[place], label, data_.n_labels);
    }
    double place_weight(int64_t example, int64_t place) const override {
        return data_.loss.weight ? data_.loss.weight[data_.offsets[example] + place] : 1.0;
    }
    double score(int64_t example, PartScores<double> scores, const int32_t* code) const override { return path_score(rows(example), scores, code); }
    bool has_components() const override { return has_truth(); }
    const int32_t* true_code(int64_t example) const override { return truth(example); }

    void prepare(const float* table, int stride, std::vector<float>& out) const override { prepare_any(table, stride, out); }
    void prepare(const double* table, int stride, std::vector<double>& out) const override { prepare_any(table, stride, out); }
    void prepare_entry(const float* table, int64_t index, int stride, std::vector<float>& out) const override {
        prepare_entry_any(table, index, stride, out);
    }
    void prepare_entry(const double* table, int64_t index, int stride, std::vector<double>& out) const override {
        prepare_entry_any(table, index, stride, out);
    }
    void search(int64_t example, PartScores<float> scores, Search kind, SearchMemory<float>& memory, int32_t* code) const override;
    void search(int64_t example, PartScores<double> scores, Search kind, SearchMemory<double>& memory, int32_t* code) const override;
    void search_within(int64_t example, RowRange places, PartScores<float> scores, SearchMemory<float>& memory, int32_t* code) const override {
        search_within_any(example, places, scores, memory, code);
    }
    void search_within(int64_t example, RowRange places, PartScores<double> scores, SearchMemory<double>& memory, int32_t* code) const override {
        search_within_any(example, places, scores, memory, code);
    }
    bool is_truth(int64_t example, const int32_t* code) const override;
    double loss(int64_t example, const int32_t* code) const override;
    void between(int64_t example, const int32_t* right, const int32_t* code, Parts& parts) const override;

    // Of legal sequences.
    bool has_max_marginals() const override { return true; }
    void max_marginals(int64_t example, PartScores<double> scores, double* out) const override;
    bool has_k_best() const override { return true; }
    void k_best(int64_t example, PartScores<double> scores, int64_t k, std::vector<int32_t>& codes, std::vector<double>& values) const override;

  private:
    int64_t table_size() const {
        const int64_t k = data_.n_labels;
        return k * k + (data_.has_ends ? 2 * k : 0);
    }
    const int32_t* truth(int64_t example) const { return data_.truth + data_.offsets[example]; }

    // The prepared table: n_labels rows of transitions, −∞ where forbidden and in the padding; then start and stop scores.
    template <class Scalar>
    struct Prepared {
        const Scalar* transition;
        const Scalar* start;
        const Scalar* stop;
    };
    template <class Scalar>
    Prepared<Scalar> prepared(PartScores<Scalar> scores) const {
        const Scalar* start = scores.table + static_cast<int64_t>(data_.n_labels) * scores.stride;
        return {scores.table, start, start + scores.stride};
    }
    template <class Scalar>
    void prepare_any(const Scalar* table, int stride, std::vector<Scalar>& out) const;
    template <class Scalar>
    void prepare_entry_any(const Scalar* table, int64_t index, int stride, std::vector<Scalar>& out) const;
    // For the rows listed; scores.node begins at the first.
    template <class Scalar>
    void add_loss(RowRange rows, PartScores<Scalar> scores) const;
    // Labels of length rows, given what the first and the last label score with what is around them.
    template <class Scalar>
    void viterbi(int64_t length, PartScores<Scalar> scores, const Scalar* first, const Scalar* last, std::vector<Scalar>& alpha, int32_t* code) const;
    template <class Scalar>
    void search_within_any(int64_t example, RowRange places, PartScores<Scalar> scores, SearchMemory<Scalar>& memory, int32_t* code) const;
    // structures/chain_slack.cpp
    void search_slack(int64_t example, PartScores<double> scores, int32_t* code) const;
    double path_score(RowRange rows, PartScores<double> scores, const int32_t* code) const;

    ChainData data_;
};

}  // namespace maxmargin
