// The weights that must be ≥ 0: each is a sum over planes with its negative part cut off.
//
// The sum is kept beside the weight, which follows from it alone however often one move writes it. So a move costs what it touches,
// and nothing for the other weights that must be ≥ 0.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace maxmargin {

class NonnegativeWeights {
  public:
    explicit NonnegativeWeights(std::vector<int64_t> weights) : weights_(std::move(weights)) {
        if (weights_.empty()) return;
        const auto [lowest, highest] = std::minmax_element(weights_.begin(), weights_.end());
        first_ = *lowest;
        sums_.assign(static_cast<size_t>(*highest - *lowest + 1), std::numeric_limits<double>::quiet_NaN());
        for (const int64_t j : weights_) sums_[j - first_] = 0.0;
    }

    bool empty() const { return weights_.empty(); }
    int64_t first() const { return first_; }
    // The weights between the first and the last of them are looked up. One comparison sees to both ends: what is below wraps around.
    bool has(int64_t j) const { return static_cast<uint64_t>(j - first_) < sums_.size() && !std::isnan(sums_[j - first_]); }

    // w_j += change, for any weight j.
    template <class Scalar>
    void add(int64_t j, double change, Scalar* w) {
        if (!has(j)) {
            w[j] += static_cast<Scalar>(change);
            return;
        }
        double& sum = sums_[j - first_];
        sum += change;
        w[j] = static_cast<Scalar>(std::max(0.0, sum));
    }

    // Cuts off negative parts.
    void clip(double* w) const {
        for (const int64_t j : weights_) w[j] = std::max(0.0, w[j]);
    }
    // The same, where w has the sums.
    void take_sums(double* w) {
        for (const int64_t j : weights_) sums_[j - first_] = w[j];
        clip(w);
    }
    void multiply_sums(double factor) {
        for (double& sum : sums_) sum *= factor;
    }

  private:
    std::vector<int64_t> weights_;
    int64_t first_ = 0;
    std::vector<double> sums_;  // of weights first_, first_ + 1, …; NaN for those that may be negative
};

}  // namespace maxmargin
