// What moving the weight of one row does to the scores of all rows, where w is known by its scores: a column of the kernel matrix.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scores/kernel_product.hpp"

namespace maxmargin {

class RowColumns {
  public:
    virtual ~RowColumns() = default;
    // k(x, x) of all rows.
    virtual std::span<const double> diagonal() const = 0;
    // Lays the columns of these rows ready, all at once; those laid ready before may be gone.
    virtual void prepare(std::span<const int64_t> rows) = 0;
    virtual bool is_ready(int64_t row) const = 0;
    // scores[r * stride + label] += a k(r, row) for all rows r, of a row that is ready.
    virtual void add(int64_t row, int32_t label, double a, int stride, double* scores) const = 0;
};

// The product outlives it.
template <class Scalar>
class KernelColumns final : public RowColumns {
  public:
    KernelColumns(KernelProduct<Scalar>& product, std::vector<double> diagonal, double constant, int n_threads)
        : product_(product), diagonal_(std::move(diagonal)), constant_(constant), workers_{n_threads, {}}, ready_(product.n_points(), nullptr) {}

    std::span<const double> diagonal() const override { return diagonal_; }
    void prepare(std::span<const int64_t> rows) override {
        for (const int64_t row : prepared_) ready_[row] = nullptr;
        prepared_.assign(rows.begin(), rows.end());
        const std::vector<const Scalar*> columns = product_.columns(rows, workers_);
        for (size_t k = 0; k < rows.size(); ++k) ready_[rows[k]] = columns[k];
    }
    bool is_ready(int64_t row) const override { return ready_[row] != nullptr; }
    void add(int64_t row, int32_t label, double a, int stride, double* scores) const override {
        const Scalar* column = ready_[row];
        const int64_t n = product_.n_rows();
        if (stride == 1)
            for (int64_t r = 0; r < n; ++r) scores[r] += a * (static_cast<double>(column[r]) + constant_);
        else
            for (int64_t r = 0; r < n; ++r) scores[r * stride + label] += a * (static_cast<double>(column[r]) + constant_);
    }

  private:
    KernelProduct<Scalar>& product_;
    std::vector<double> diagonal_;
    double constant_;
    Workers workers_;
    std::vector<const Scalar*> ready_;  // by row
    std::vector<int64_t> prepared_;
};

}  // namespace maxmargin
