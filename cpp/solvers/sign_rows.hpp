// The dual of rows with one of two labels each, at scores of all rows that follow every move (kernel columns): batches of the rows
// that are worth most.
//
// Scores are never old here, so that what each row would gain is known, and a batch is chosen by it and solved by pairs of variables
// (qp/box_qp.hpp). Up to half of it are rows of the batch before whose α lies between its bounds: without them the next batch undoes what the
// last one did (working sets as in Joachims 1999; Wen et al. 2018 keep half of them too). The others are of both classes, because rows
// that have much in common can only go up together if others go up against them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "qp/box_qp.hpp"
#include "scores/row_columns.hpp"

namespace maxmargin {

class SignRows {
  public:
    struct Row {
        double alpha, loss, y, curvature, ridge, budget, upper;
    };
    // All rows are without a budget.
    explicit SignRows(int64_t n);
    void set(int64_t row, const Row& values);
    // The gap of all rows at their scores, and by how much that of one exceeds tolerance · budget.
    BoxGap evaluate(double tolerance, bool squared, const double* scores);
    // After evaluate(): the rows to be moved next.
    std::span<const int64_t> choose();
    double alpha(int64_t row) const { return alpha_[row]; }
    // Moves the rows chosen last, and the scores of all.
    BoxSteps solve(RowColumns& columns, double* scores);

  private:
    void keep_free();
    void add_best(const std::vector<int32_t>& rows, size_t wanted);
    bool is_better(int64_t a, int64_t b) const { return worth_[a] > worth_[b] || (worth_[a] == worth_[b] && a < b); }

    int64_t n_, padded_;
    std::vector<double> alpha_, loss_, y_, curvature_, inverse_, ridge_, budget_, upper_, worth_;
    std::array<std::vector<int32_t>, 2> by_class_;
    std::vector<int64_t> batch_;
    std::vector<char> is_in_batch_;
    std::vector<int32_t> candidates_;
    std::vector<double> sample_, among_, gram_, arrays_, change_;
};

}  // namespace maxmargin
