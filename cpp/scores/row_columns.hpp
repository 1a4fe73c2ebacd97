// What moving the weight of one row does to the scores of all rows, where w is known by its scores: a column of the kernel matrix.
#pragma once

#include <algorithm>
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
    // Lays the columns of these rows ready, in place of those laid ready before; writes k among them, rows × rows.
    virtual void prepare(std::span<const int64_t> rows, std::vector<double>& among) = 0;
    // scores[r * stride + label] += Σ_p change[p * stride + label] k(r, row p laid ready) for all rows r.
    virtual void add(const std::vector<double>& change, int stride, double* scores) const = 0;
};

// The product outlives it.
template <class Scalar>
class KernelColumns final : public RowColumns {
  public:
    KernelColumns(KernelProduct<Scalar>& product, std::vector<double> diagonal, double constant, Workers workers)
        : product_(product), diagonal_(std::move(diagonal)), constant_(constant), workers_(std::move(workers)) {}

    std::span<const double> diagonal() const override { return diagonal_; }
    void prepare(std::span<const int64_t> rows, std::vector<double>& among) override {
        columns_ = product_.columns(rows, workers_);
        const size_t n = rows.size();
        among.resize(n * n);
        for (size_t p = 0; p < n; ++p)
            for (size_t q = 0; q < n; ++q) among[p * n + q] = p == q ? diagonal_[rows[p]] : static_cast<double>(columns_[p][rows[q]]) + constant_;
    }
    void add(const std::vector<double>& change, int stride, double* scores) const override {
        constexpr int64_t chunk_rows = 1024;
        const int64_t n = product_.n_rows();
        std::vector<std::vector<Scalar>> memories(std::max(workers_.n_threads, 1));
        // To its end: scores of some rows only would no longer be those of any α.
        for_each_chunk((n + chunk_rows - 1) / chunk_rows, {workers_.n_threads, {}}, [&](int64_t chunk, int thread) {
            const int64_t first = chunk * chunk_rows, length = std::min(chunk_rows, n - first);
            for (int label = 0; label < stride; ++label) {
                // A batch is summed in Scalar, and added in double.
                std::vector<Scalar>& sum = memories[thread];
                sum.assign(chunk_rows, Scalar{0});
                double total = 0.0;
                bool any = false;
                for (size_t p = 0; p < columns_.size(); ++p) {
                    const double a = change[p * static_cast<size_t>(stride) + label];
                    if (a == 0.0) continue;
                    any = true;
                    total += a;
                    const Scalar* column = columns_[p] + first;
                    for (int64_t r = 0; r < length; ++r) sum[r] += static_cast<Scalar>(a) * column[r];
                }
                for (int64_t r = 0; any && r < length; ++r) scores[(first + r) * stride + label] += static_cast<double>(sum[r]) + total * constant_;
            }
        });
    }

  private:
    KernelProduct<Scalar>& product_;
    std::vector<double> diagonal_;
    double constant_;
    Workers workers_;
    std::vector<const Scalar*> columns_;
};

}  // namespace maxmargin
