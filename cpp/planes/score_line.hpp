// Scores of all rows at two points, for structures whose search is cheaper than scoring: the best outputs and the slope of the
// objective anywhere on the line through the points cost no scoring.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "planes/linear_space.hpp"

namespace maxmargin {

class ScoreLine {
  public:
    // The anchor starts at w = 0.
    explicit ScoreLine(std::shared_ptr<const LinearSpace> space)
        : space_(std::move(space)), anchor_(n_rows() * space_->stride(), 0.0f), now_(anchor_.size(), 0.0f) {}

    // Scores at w.
    void evaluate(const float* w, const Workers& workers) {
        for_each_chunk((n_rows() + chunk_ - 1) / chunk_, workers, [&](int64_t chunk, int) {
            const int64_t first = chunk * chunk_, end = std::min(first + chunk_, n_rows());
            const int stride = space_->stride();
            score_rows(ScoreTask<float>{&space_->features(), nullptr, first, end - first, w, stride, now_.data() + first * stride});
        });
    }
    // anchor ← (1 − t) anchor + t w
    void move_anchor(double t) {
        for (size_t j = 0; j < anchor_.size(); ++j) anchor_[j] = static_cast<float>(line(t).score(static_cast<int64_t>(j)));
    }
    // d/dt of Σ_i s_i max(0, best value of i) at (1 − t) anchor + t w.
    double slope(double t, const double* sample_weight, const Workers& workers) const {
        const int64_t n_chunks = (n_rows() + chunk_ - 1) / chunk_;
        std::vector<double> partial(n_chunks);
        for_each_chunk(n_chunks, workers, [&](int64_t chunk, int) {
            const int64_t first = chunk * chunk_, end = std::min(first + chunk_, n_rows());
            Line part = line(t);
            part.anchor += first * part.stride;
            part.now += first * part.stride;
            partial[chunk] = space_->structure().line_slope(first, end, part, space_->search_kind(), sample_weight);
        });
        double sum = 0.0;
        for (const double slope : partial) sum += slope;
        return sum;
    }
    // The cut of all examples' best outputs at (1 − t) anchor + t w.
    ReducedCut cut(double t, const double* sample_weight, const Workers& workers) const {
        return space_->sum_on_line(line(t), sample_weight, workers);
    }

    const LinearSpace& space() const { return *space_; }

  private:
    static constexpr int64_t chunk_ = 16384;
    int64_t n_rows() const { return space_->features().n_rows; }
    Line line(double t) const { return {anchor_.data(), now_.data(), space_->stride(), t}; }

    std::shared_ptr<const LinearSpace> space_;
    std::vector<float> anchor_, now_;
};

}  // namespace maxmargin
