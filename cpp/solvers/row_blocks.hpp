// The block dual where an example is one row of features with one label: what working sets store of a plane is not needed.
//
//     hinge           max  Σ α Δ − ½‖w‖²                               Σ_l α_il ≤ C_i
//     squared hinge   max  Σ α Δ − ½‖w‖² − Σ_i (Σ_l α_il)² / 4C_i      no upper bound
//     α ≥ 0,  w = Σ α ψ,  ψ_il = f_il (e_y − e_l) ⊗ x_i with f = 1 or, under slack rescaling, Δ_il;  two classes: f_i y_i x_i
//
// The Gram matrix of an example is ‖x‖² f_l f_m (1 + [l = m]): a visit scores the row, moves the α of all wrong labels, and writes w
// once (Crammer and Singer 2001; Hsieh et al. 2008 for two classes). An example keeps the α of the labels that carry mass, no more.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "planes/linear_space.hpp"
#include "scores/row_columns.hpp"
#include "scores/sparse_copy.hpp"
#include "solvers/joint_blocks.hpp"
#include "solvers/label_masses.hpp"
#include "solvers/sign_rows.hpp"
#include "threads/parallel.hpp"

namespace maxmargin {

class RowBlocks {
  public:
    // The space's structure has row_labels. budgets: C_i = C s_i.
    // With columns w is known by its scores: the space's features name the rows, and moving a row moves the scores of all rows. Only
    // weights in double are moved then.
    RowBlocks(std::shared_ptr<const LinearSpace> space, std::vector<double> budgets, bool squared, std::shared_ptr<RowColumns> columns = nullptr);
    ~RowBlocks();

    // Σ C_i H_i at these weights (H_i² for the squared hinge). Remembers every block's gap for activate().
    double evaluate(WeightsView w, const Workers& workers);
    // From now on sweeps visit the blocks whose gap exceeded tolerance · C_i at the last evaluate(); before that, all.
    void activate(double tolerance);
    int64_t n_active() const { return static_cast<int64_t>(active_.size()); }

    struct Sweep {
        double gap = 0.0;   // Σ over blocks of the block's own duality gap when it was visited
        double gain = 0.0;  // of the dual
        int64_t visits = 0, moves = 0;
    };
    // Visits the active blocks in random order. Those whose gap exceeds tolerance · C_i are solved, the others are active no more.
    // With columns the blocks that gain most are visited in their place, until no gap exceeds that, or all together are small enough.
    Sweep sweep(double tolerance, double enough, uint64_t seed, MovingWeights w, const Workers& workers);

    // Takes over the α of planes, cut down to the budgets, each example's by itself or all alike; returns whether there was anything to
    // cut. w has to be summed then, and evaluate() has to come before the next sweep.
    bool start(const PlaneBatch& planes, bool all_alike);
    // Budgets become so many times what they were, and α the multiple of itself that is worth most under them; returns the multiple,
    // which w has to be taken by, and is told ‖w‖². evaluate() has to come before the next sweep.
    double rescale(double ratio, double norm2);

    // Σ α Δ − the quadratic term of the squared hinge: the dual is this − ½‖w‖².
    double linear_part() const;
    // w = Σ α ψ, recomputed; with columns, its coefficients of the rows.
    void weights(double* w) const;
    bool has_columns() const { return columns_ != nullptr; }
    // The planes that carry mass, by example, with their α.
    PlaneBatch planes() const;

    int64_t n_planes() const;
    // The planes of all rows as one problem, for steps that move every α at once; not with columns. w has to be summed after it was
    // taken over, and evaluate() has to come before the next sweep.
    std::unique_ptr<JointBlocks> joint();

    const LinearSpace& space() const { return *space_; }
    bool is_squared() const { return squared_; }

  private:
    struct Memory;
    class Joint;
    struct LabelMove;

    // In here examples are numbered in the order in which their rows lie: at random where the rows are a copy.
    int64_t given_number(int64_t example) const { return given_.empty() ? example : given_[example]; }
    void copy_rows();
    std::vector<std::vector<LabelMass>> masses_of(const PlaneBatch& planes) const;
    double most_growth() const;
    double loss(int64_t example, int32_t label) const;
    double factor(double loss) const { return space_->factor(loss); }
    double ridge(int64_t example) const { return squared_ ? 0.5 / budgets_[example] : 0.0; }
    double curvature(int64_t example, double loss) const { return norms_[example] * factor(loss) * factor(loss); }
    double gap(double highest, double paid, double total, double C) const;
    template <class Use>
    void for_each_mass(Use&& use) const;

    // Visits solve the block at these scores of its row if its gap exceeds tolerance · C_i, and note the changes of α.
    // Two classes: returns whether it moves, and what of the row w changes by.
    bool visit_sign(int64_t example, double score, double tolerance, Sweep& result, double& step);
    // More.
    template <class Scalar>
    bool visit_labels(int64_t example, const Scalar* scores, double tolerance, Sweep& result);
    template <class Scalar>
    double value_labels(int64_t example, const Scalar* scores, Memory& memory) const;
    double paid_by(int64_t example, const Memory& memory, double& total) const;
    void solve_uniform(int64_t example, double total) const;
    void solve_best(int64_t example) const;
    double take(int64_t example);
    template <class Scalar>
    void write(int64_t example, Scalar* w) const;

    void drop_resting();

    // In row_batches.cpp, with columns:
    Sweep sweep_signs(double tolerance, double enough, double* scores);
    SignRows sign_rows(double tolerance, double* scores, Sweep& result);
    void move_flat(int64_t example, double tolerance, double* scores, Sweep& result);
    // In label_batches.cpp, with columns:
    Sweep sweep_labels(double tolerance, double enough, double* scores);
    void move_flat_labels(double tolerance, double* scores, Sweep& result);
    double value_rows(double tolerance, const double* scores, Sweep& result);
    LabelMove best_move(int64_t row, double highest, double total) const;
    LabelMove move_between(int64_t row, int32_t from, int32_t to, double total) const;
    void choose_moves(const double* scores, std::vector<LabelMove>& batch);
    bool solve_moves(std::vector<LabelMove>& batch, double* scores, Sweep& result);
    void take_move(const LabelMove& move, double mass);

    template <class Scalar>
    void fetch_ahead(size_t place, const Scalar* w) const;
    template <class Scalar>
    Sweep sweep_any(double tolerance, Scalar* w);
    template <class Scalar>
    double evaluate_any(const Scalar* w, const Workers& workers);
    template <class Scalar>
    double cost_of(int64_t example, const Scalar* scores, Memory& memory);

    std::shared_ptr<const LinearSpace> space_;
    RowLabels labels_;
    std::vector<int32_t> given_;  // the given number of each example; empty: the same
    std::vector<int32_t> truth_;
    bool squared_;
    int n_labels_, stride_;
    std::vector<double> budgets_;
    std::unique_ptr<SparseCopy> copy_;
    Features features_;
    std::shared_ptr<RowColumns> columns_;
    std::vector<double> norms_;     // ‖x‖²
    std::vector<double> alpha_;     // of two classes
    LabelMasses masses_;            // of more
    std::vector<bool> is_uniform_;  // by true label: whether all planes have the same factor f
    std::vector<float> gaps_;       // gap / C_i at the last evaluate()
    std::vector<int32_t> active_;
    std::unique_ptr<Memory> memory_;
};

}  // namespace maxmargin
