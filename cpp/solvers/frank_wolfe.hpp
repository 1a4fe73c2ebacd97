// Block-coordinate Frank-Wolfe: one point of the dual, moved within one example's simplex at a time (Lacoste-Julien et al. 2013).
//
//     max  b − ½‖w‖²,    w = Σ_i w_i + μ,  b = Σ_i b_i,    (b_i, w_i) = Σ_p α_ip (Δ_ip, ψ_ip),  α ≥ 0,  Σ_p α_ip ≤ C_i,
//     μ_j ≥ 0 on the non-negative weights and 0 elsewhere
//
// A block is kept as coefficients over its parts, which are finitely many, and not as a list of its planes. Pairwise steps
// (Osokin et al. 2016) need planes they can take mass from: a few are kept apart, and what exceeds them joins the sum.
//
// The average w̄ ← (1 − 2/(k+2)) w̄ + 2/(k+2) w after steps k = 0, 1, … is, with d_j the j-th step (j = 1 … K),
//
//     w̄ = 2/(K(K+1)) Σ_k k w_k = w − 2/(K(K+1)) Σ_j j(j−1)/2 d_j
//
// so only the weighted sum of the steps is kept, over parts as well: a step costs nothing more in the length of w.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "planes/oracle.hpp"
#include "planes/part_vector.hpp"
#include "planes/plane_space.hpp"
#include "solvers/sum_tree.hpp"
#include "threads/parallel.hpp"

namespace maxmargin {

class FrankWolfe {
  public:
    struct Settings {
        bool averages = true;
        // 0: steps towards a plane, away from all others. Else pairwise steps among so many planes and the sum of the others.
        size_t max_planes = 0;
    };
    // budgets: C_i = C s_i.
    FrankWolfe(std::shared_ptr<const PlaneSpace> space, std::vector<double> budgets, std::vector<int64_t> nonnegative, Settings settings);
    // Begins where another one is, all α times a factor: the point fits budgets that differ by it. The average begins anew.
    void start_from(const FrankWolfe& other, double factor);

    struct Pass {
        double gap = 0.0;  // Σ over visits of the block's gap C_i Δ − b_i − w·(C_i ψ − w_i)
        int64_t moves = 0;
    };
    // Visits the listed examples in turn with a plane of the oracle for each, asked for batch_size examples at a time at the w that
    // the batch begins with. w is where the last pass left it.
    Pass pass(Oracle& oracle, std::span<const int64_t> order, int64_t batch_size, double* w, const Workers& workers);
    // The same for examples drawn in proportion to the gaps that their last visits found, one for each of the numbers in [0, 1).
    Pass pass_by_gaps(Oracle& oracle, std::span<const double> uniforms, int64_t batch_size, double* w, const Workers& workers);
    // The examples that such numbers draw now.
    std::vector<int64_t> draw(std::span<const double> uniforms) const;
    double gap(int64_t example) const { return gaps_[example]; }
    double total_gap() const { return gaps_.total(); }

    // w, summed anew from the blocks; drift of the w that passes have moved ends here.
    void weights(double* w);
    // w̄, with the best μ for it.
    void average(double* w) const;
    double loss() const;          // b
    double average_loss() const;  // b̄

    // Lower bounds of the listed examples' slacks at w, up to rounding: what a mean of known planes is worth.
    std::vector<double> worth(std::span<const int64_t> ids, const double* w) const;

    const PlaneSpace& space() const { return *space_; }
    int64_t n_steps() const { return n_steps_; }
    int64_t n_entries() const;  // coefficients kept over parts
    int64_t n_planes() const;   // kept for pairwise steps

  private:
    struct Found {
        Code code;
        double loss;
    };
    struct Kept {
        std::vector<int32_t> code;
        double loss, alpha;
    };
    struct Block {
        double loss = 0.0, mass = 0.0;  // Σ αΔ and Σ α of the planes that are not kept apart
        PartVector point;               // Σ αψ of the same
        PartVector steps;               // Σ_j j(j−1)/2 d_j
        std::vector<Kept> kept;
        PlaneParts parts;  // of the kept planes
    };
    struct Pair;

    void visit_batch(Oracle& oracle, std::span<const int64_t> ids, double* w, Pass& result);
    double step_towards(int64_t example, const Found* plane, double* w, Pass& result);
    double step_pairwise(int64_t example, const Found* plane, double* w, Pass& result);
    Pair best_pair(const Block& block, double budget, const double* values, double rest) const;
    void take(Block& block, const Pair& pair, double step);
    void fold_beyond(Block& block, size_t max_planes);
    static void forget(Block& block, const std::vector<bool>& drop);
    // w·d and ‖d‖² of the direction.
    void measure(const double* w, double& slope, double& norm2);
    void move(Block& block, double step, double loss, double* w);
    void add_point(const Block& block, double* w) const;
    double share_of_steps() const;

    std::shared_ptr<const PlaneSpace> space_;
    std::unique_ptr<PlaneScratch> scratch_;
    std::vector<double> budgets_;
    NonnegativeWeights nonnegative_;  // with their sums Σ w_i
    Settings settings_;
    std::vector<Block> blocks_;  // by example
    SumTree gaps_;
    int64_t n_steps_ = 0;
    double step_losses_ = 0.0;  // Σ_j j(j−1)/2 of the changes of b
    PartVector direction_;
    PlaneParts line_;  // the direction written out
};

}  // namespace maxmargin
