// What an output is: its code, its loss, its parts, and how the best one is found from part scores.
//
// Part scores come in two blocks: node scores, a row of n_labels numbers for each feature row of the example, and a
// table of tied numbers (transitions and the like). Where they come from is not known here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace maxmargin {

// Which output is searched: the best score; the best score + loss; the best loss · (1 + score − score of the truth).
enum class Search { plain, margin, slack };

template <class Scalar>
struct PartScores {
    Scalar* node;  // rows of the example × stride; search may overwrite them
    int stride;
    const Scalar* table;  // as laid out by Structure::prepare
    bool same_table = false;  // as at the last search of this example: what was made of it may still serve
    bool is_rough = false;    // a good output is enough: a search that takes long is cut short, and nothing is noted of it
};

// Node scores along a line.
struct Line {
    const float* anchor;
    const float* now;
    int stride;
    double t;
    double score(int64_t j) const { return (1.0 - t) * anchor[j] + t * now[j]; }
    double change(int64_t j) const { return static_cast<double>(now[j]) - anchor[j]; }
};

// sign × (features of row, placed at label)
struct NodePart {
    int64_t row;
    int32_t label;
    int32_t sign;  // 1 or −1
};

// coefficient × (table weight number index)
struct TablePart {
    int64_t index;
    double coefficient;
};

struct Parts {
    std::vector<NodePart> nodes;  // parts of one row stand together
    std::vector<TablePart> table;
    void clear() {
        nodes.clear();
        table.clear();
    }
};

// Per-thread memory for searches, grown as needed.
template <class Scalar>
struct SearchMemory {
    std::vector<Scalar> scores, ends;
};

struct RowRange {
    int64_t begin, end;
    int64_t length() const { return end - begin; }
};

// Loss of giving row r the label ȳ where y is true: weight[r] · cost[y][ȳ]; a missing table means 0/1, missing weights 1.
struct NodeLoss {
    const double* cost = nullptr;    // n_labels × n_labels, zero diagonal
    const double* weight = nullptr;  // one per row

    double operator()(int64_t row, int32_t truth, int32_t label, int n_labels) const {
        const double base = cost ? cost[static_cast<int64_t>(truth) * n_labels + label] : truth != label ? 1.0 : 0.0;
        return weight ? weight[row] * base : base;
    }
};

// The truth and the losses where an example is one row with one label.
struct RowLabels {
    const int32_t* truth = nullptr;
    bool is_sign = false;          // labels are −1 and 1 and share one column of weights, else they are 0 … n_labels − 1
    double sign_loss[2] = {0, 0};  // of a −1 taken for +1, and the reverse
    NodeLoss loss;                 // of other labels
};

class Structure {
  public:
    virtual ~Structure() = default;
    virtual int64_t n_examples() const = 0;
    virtual int n_labels() const = 0;
    virtual int64_t n_table() const = 0;
    // Whether the coefficients of table parts are whole numbers, which count how often something stands in an output.
    virtual bool counts_table() const { return true; }
    virtual RowRange rows(int64_t example) const = 0;
    virtual int64_t code_length(int64_t example) const = 0;
    // Whether true outputs are known: everything but prediction needs them.
    virtual bool has_truth() const = 0;
    // Whether Search::slack is possible, given the truth.
    virtual bool has_slack_search() const { return true; }
    // Whether numbers that came from elsewhere are the code of an output of this example.
    virtual bool is_code(int64_t example, std::span<const int32_t> numbers) const {
        return static_cast<int64_t>(numbers.size()) == code_length(example) &&
               std::all_of(numbers.begin(), numbers.end(), [&](int32_t label) { return label >= 0 && label < n_labels(); });
    }

    // Lays the table weights out for the decoder, once for many searches.
    virtual void prepare(const float* table, int stride, std::vector<float>& prepared) const { (void)table, (void)stride, (void)prepared; }
    virtual void prepare(const double* table, int stride, std::vector<double>& prepared) const { (void)table, (void)stride, (void)prepared; }
    // The same again for one weight that has changed.
    virtual void prepare_entry(const float* table, int64_t index, int stride, std::vector<float>& prepared) const {
        (void)table, (void)index, (void)stride, (void)prepared;
    }
    virtual void prepare_entry(const double* table, int64_t index, int stride, std::vector<double>& prepared) const {
        (void)table, (void)index, (void)stride, (void)prepared;
    }

    virtual void search(int64_t example, PartScores<float> scores, Search kind, SearchMemory<float>& memory, int32_t* code) const = 0;
    virtual void search(int64_t example, PartScores<double> scores, Search kind, SearchMemory<double>& memory, int32_t* code) const = 0;

    // The k best outputs without loss, best first; fewer where fewer exist. codes: values.size() × code_length, values: their
    // scores.
    virtual bool has_k_best() const { return false; }
    virtual void k_best(int64_t example, PartScores<double> scores, int64_t k, std::vector<int32_t>& codes, std::vector<double>& values) const {
        (void)example, (void)scores, (void)k, (void)codes, (void)values;
    }

    // The best score of all outputs with a given label at a given place, without loss: a number for each label of each place, rows(example)
    // × n_labels() of them.
    virtual bool has_max_marginals() const { return false; }
    virtual void max_marginals(int64_t example, PartScores<double> scores, double* out) const { (void)example, (void)scores, (void)out; }

    // For structures without a table whose search is a glance at one row: the derivative of Σ s_i max(0, best value of i) in t at
    // node scores (1 − t) anchor + t now, for examples first … end − 1. Rows are stride apart; anchor and now begin at row first.
    virtual bool has_line_slope() const { return false; }
    virtual double line_slope(int64_t first, int64_t end, Line line, Search kind, const double* sample_weight) const {
        (void)first, (void)end, (void)line, (void)kind, (void)sample_weight;
        return 0.0;
    }

    // The truth, where it is known and every example is one row with one label.
    virtual std::optional<RowLabels> row_labels() const { return std::nullopt; }

    // Whether outputs that differ from the truth at places which are not neighbours combine, loss and parts being sums over them.
    virtual bool has_components() const { return false; }
    // The best output that is the truth outside places begin … end − 1, with the loss; scores.node begins at the row of place begin.
    virtual void search_within(int64_t example, RowRange places, PartScores<float> scores, SearchMemory<float>& memory, int32_t* code) const {
        (void)example, (void)places, (void)scores, (void)memory, (void)code;
    }
    virtual void search_within(int64_t example, RowRange places, PartScores<double> scores, SearchMemory<double>& memory, int32_t* code) const {
        (void)example, (void)places, (void)scores, (void)memory, (void)code;
    }

    // Whether a code is a label for each of its places, with a node score and a loss for each label there.
    virtual bool has_places() const { return false; }
    // Whether any labels of the places make an output.
    virtual bool has_free_places() const { return true; }
    virtual int labels_at(int64_t example, int64_t place) const {
        (void)example, (void)place;
        return n_labels();
    }
    // Where the score of a label at a place stands among the node scores of the example.
    virtual int64_t score_place(int64_t example, int64_t place, int32_t label, int stride) const {
        (void)example;
        return place * stride + label;
    }
    virtual double loss_at(int64_t example, int64_t place, int32_t label) const {
        (void)example, (void)place, (void)label;
        return 0.0;
    }
    // How much a place counts when two outputs are compared.
    virtual double place_weight(int64_t example, int64_t place) const {
        (void)example, (void)place;
        return 1.0;
    }
    // The score of an output, without its loss.
    virtual double score(int64_t example, PartScores<double> scores, const int32_t* code) const {
        (void)example, (void)scores, (void)code;
        return 0.0;
    }

    // Needs the truth. is_truth answers whether ψ vanishes.
    virtual bool is_truth(int64_t example, const int32_t* code) const = 0;
    virtual double loss(int64_t example, const int32_t* code) const = 0;
    virtual const int32_t* true_code(int64_t example) const = 0;
    // The parts of Ψ(right) − Ψ(code): of what differs between them, and nothing else.
    virtual void between(int64_t example, const int32_t* right, const int32_t* code, Parts& parts) const = 0;
    // The parts of Ψ(truth) − Ψ(code).
    void difference(int64_t example, const int32_t* code, Parts& parts) const { between(example, true_code(example), code, parts); }
};

}  // namespace maxmargin
