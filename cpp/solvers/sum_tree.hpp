// Numbers ≥ 0 that change one at a time, and draws in proportion to them.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace maxmargin {

class SumTree {
  public:
    explicit SumTree(size_t n) : first_leaf_(std::bit_ceil(n + 1)), sums_(2 * first_leaf_, 0.0) {}

    double operator[](size_t k) const { return sums_[first_leaf_ + k]; }
    double total() const { return sums_[1]; }
    // Sums are made anew from their two halves: nothing is left of the numbers that were there before.
    void set(size_t k, double value) {
        size_t node = first_leaf_ + k;
        sums_[node] = value;
        while (node > 1) {
            node /= 2;
            sums_[node] = sums_[2 * node] + sums_[2 * node + 1];
        }
    }
    // The number k whose share of [0, 1) holds u. Needs total() > 0; never one that is 0.
    size_t find(double u) const {
        double left = u * total();
        size_t node = 1;
        while (node < first_leaf_) {
            node *= 2;
            if (left < sums_[node] || sums_[node + 1] <= 0.0) continue;
            left -= sums_[node++];
        }
        return node - first_leaf_;
    }

  private:
    size_t first_leaf_;
    std::vector<double> sums_;  // the children of node k are 2k and 2k + 1
};

}  // namespace maxmargin
