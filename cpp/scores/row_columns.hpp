// What moving the weight of one row does to the scores of all rows, where w is known by its scores: a column of the kernel matrix.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "scores/kernel_product.hpp"
#include "threads/parallel.hpp"

namespace maxmargin {

class RowColumns {
  public:
    virtual ~RowColumns() = default;
    // k(x, x) of all rows.
    virtual std::span<const double> diagonal() const = 0;
    // Lays the columns of these rows ready, in place of those laid ready before.
    virtual void prepare(std::span<const int64_t> rows) = 0;
    // The same; writes k among the rows, rows × rows.
    virtual void prepare(std::span<const int64_t> rows, std::vector<double>& among) = 0;
    // scores[r * stride + label] += Σ_p change[p * stride + label] k(r, row p laid ready) for all rows r.
    virtual void add(const std::vector<double>& change, int stride, double* scores) const = 0;
    // out[k] = k(row, rows[k]): these values alone are computed, unless the column of the row is there.
    virtual void values(int64_t row, std::span<const int64_t> rows, double* out) = 0;
};

// Columns of one type of numbers. A batch of them is summed in Sum, and added to the scores in double.
template <class Scalar, class Sum>
class TypedColumns : public RowColumns {
  public:
    TypedColumns(std::vector<double> diagonal, double constant, Workers workers)
        : workers_(std::move(workers)), diagonal_(std::move(diagonal)), constant_(constant) {}

    std::span<const double> diagonal() const override { return diagonal_; }
    void prepare(std::span<const int64_t> rows) override { columns_ = columns(rows); }
    void prepare(std::span<const int64_t> rows, std::vector<double>& among) override;
    void add(const std::vector<double>& change, int stride, double* scores) const override;
    void values(int64_t row, std::span<const int64_t> rows, double* out) override;

  protected:
    Workers workers_;

  private:
    // The columns that move the scores of one label.
    struct Moved {
        int label;
        std::vector<const Scalar*> columns;
        std::vector<double> factors;
        double total = 0.0;
    };
    std::vector<Moved> by_label(const std::vector<double>& change, int stride) const;
    // The columns of some rows, without the constant; they stay until the next call.
    virtual std::vector<const Scalar*> columns(std::span<const int64_t> rows) = 0;
    // The column of a row if no value has to be computed for it, else null; and k(row, rows[k]), where it is null.
    virtual const Scalar* column_at_hand(int64_t row) = 0;
    virtual void write_values(int64_t row, std::span<const int64_t> rows, std::vector<Scalar>& out) = 0;

    std::vector<double> diagonal_;
    double constant_;
    std::vector<const Scalar*> columns_;
    std::vector<Scalar> values_;
};

// Columns of a kernel that is computed. The product outlives them.
template <class Scalar>
class KernelColumns final : public TypedColumns<Scalar, Scalar> {
  public:
    KernelColumns(KernelProduct<Scalar>& product, std::vector<double> diagonal, double constant, Workers workers)
        : TypedColumns<Scalar, Scalar>(std::move(diagonal), constant, std::move(workers)), product_(product) {}

  private:
    std::vector<const Scalar*> columns(std::span<const int64_t> rows) override { return product_.columns(rows, this->workers_); }
    const Scalar* column_at_hand(int64_t row) override { return product_.kept_column(row); }
    void write_values(int64_t row, std::span<const int64_t> rows, std::vector<Scalar>& out) override {
        out.resize(rows.size());
        product_.matrix(rows, row, row + 1, out.data(), {1, this->workers_.poll});
    }

    KernelProduct<Scalar>& product_;
};

// Columns of a symmetric matrix, row by row in memory that outlives them. Its numbers are taken as they are: sums are in double.
template <class Scalar>
class StoredColumns final : public TypedColumns<Scalar, double> {
  public:
    StoredColumns(const Scalar* matrix, int64_t n_rows, double constant, Workers workers)
        : TypedColumns<Scalar, double>(diagonal_of(matrix, n_rows, constant), constant, std::move(workers)), matrix_(matrix), n_rows_(n_rows) {}

  private:
    static std::vector<double> diagonal_of(const Scalar* matrix, int64_t n_rows, double constant) {
        std::vector<double> diagonal(static_cast<size_t>(n_rows));
        for (int64_t r = 0; r < n_rows; ++r) diagonal[r] = static_cast<double>(matrix[r * n_rows + r]) + constant;
        return diagonal;
    }
    std::vector<const Scalar*> columns(std::span<const int64_t> rows) override {
        std::vector<const Scalar*> found;
        for (const int64_t row : rows) found.push_back(matrix_ + row * n_rows_);
        return found;
    }
    const Scalar* column_at_hand(int64_t row) override { return matrix_ + row * n_rows_; }
    void write_values(int64_t /*row*/, std::span<const int64_t> /*rows*/, std::vector<Scalar>& /*out*/) override {}

    const Scalar* matrix_;
    int64_t n_rows_;
};

}  // namespace maxmargin
