// Passes of online learners: examples are visited one at a time, and each visit moves w before the next one looks.
//
//     perceptron   w += s_i ψ                             ψ of the best output without loss, where that is wrong
//     MIRA         w += s_i Σ_p α_p ψ_p                   over the k best outputs without loss, at the w before the visit:
//                      max_α  Σ_p α_p (Δ_p − w·ψ_p) − ½‖Σ_p α_p ψ_p‖²     α ≥ 0, Σ_p α_p ≤ C
//     SGD          w ← max(0, 1 − η/nC) w + η s_i ψ       ψ of the most violated output, η = η0 / (1 + η0 t / decay)^0.75,
//                  then w_J ← max(0, w_J)                 t visits made before
//
// The average of w over the visits 1 … T is w − late / T with late = Σ_t (t − 1) · (change of w at visit t): an update writes
// two vectors where it is, nothing is written for the others. SGD keeps w as scale · v.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "planes/oracle.hpp"
#include "planes/plane_space.hpp"
#include "threads/parallel.hpp"

namespace maxmargin {

class OnlinePass {
  public:
    // What w points to is what the oracles of the visits look at, and outlives the pass; a float copy is moved beside the exact
    // weights, rounding at each step. sample_weight: s_i, empty where all are 1. visits: those made before, in passes that this one
    // continues. nonnegative: J of SGD, whose weights are ≥ 0 at the beginning.
    OnlinePass(std::shared_ptr<const PlaneSpace> space, MovingWeights w, std::vector<double> sample_weight, int64_t visits,
               std::vector<int64_t> nonnegative);

    struct Seen {
        int64_t updates = 0;  // visits that found something to learn
        double loss = 0.0;    // Σ s_i Δ of the best outputs (SGD: Σ s_i H_i), each at the w of its visit
    };
    Seen perceptron(std::span<const int64_t> order, Oracle& oracle, double* late, const Workers& workers);
    // C may be infinite.
    Seen mira(std::span<const int64_t> order, Oracle& oracle, double C, double* late, const Workers& workers);

    struct Descent {
        double eta0, decay;
        double nC;
    };
    Seen sgd(std::span<const int64_t> order, Oracle& oracle, const Descent& descent, const Workers& workers);
    // Writes scale · v to w: until then w holds v.
    void fold();

    int64_t visits() const { return visits_; }
    const PlaneSpace& space() const { return *space_; }

  private:
    template <class Learn>
    Seen visit_all(std::span<const int64_t> order, Oracle& oracle, const Workers& workers, Learn&& learn);
    void add(const PlaneBatch& found, int64_t p, double a, double* late);
    // α of MIRA's problem over the planes found, whose values at w are values_.
    void solve(const PlaneBatch& found, double C);
    void value(const PlaneBatch& found);

    std::shared_ptr<const PlaneSpace> space_;
    std::unique_ptr<PlaneScratch> scratch_;  // can be as long as w: it is made once
    MovingWeights w_;
    std::vector<double> sample_weight_;
    int64_t visits_;
    NonnegativeWeights nonnegative_;
    double scale_ = 1.0;
    std::vector<Code> codes_;
    std::vector<double> values_, gram_, alpha_;
};

}  // namespace maxmargin
