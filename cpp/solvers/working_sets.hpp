// Planes per example with their dual variables: the block problem that n-slack cutting planes and dual coordinate methods
// share.
//
//     hinge           max  Σ α Δ − ½‖w‖²                               Σ_p α_ip ≤ C_i
//     squared hinge   max  Σ α Δ − ½‖w‖² − Σ_i (Σ_p α_ip)² / 4C_i      no upper bound
//     α ≥ 0,  w = Σ α ψ + μ,  μ_j ≥ 0 on the non-negative weights and 0 elsewhere
//
// A visit values one block's planes at w, moves their α and writes w once. An example has one block, or, by components, one for
// each stretch in which its outputs have been found to differ from the truth: see components.cpp.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "planes/oracle.hpp"
#include "planes/plane_space.hpp"
#include "solvers/block.hpp"
#include "solvers/joint_blocks.hpp"
#include "threads/parallel.hpp"

namespace maxmargin {

class WorkingSets {
  public:
    // budgets: C_i = C s_i. An example with C_i = 0 never gets a plane. By components needs a space that has them, and the hinge.
    WorkingSets(std::shared_ptr<const PlaneSpace> space, std::vector<double> budgets, bool squared, std::vector<int64_t> nonnegative,
                bool by_components = false);
    ~WorkingSets();

    // Adds the planes whose value at w exceeds what their example already pays by more than epsilon. Returns how many.
    int64_t insert(const PlaneBatch& planes, const double* w, double epsilon);

    // Takes over the planes of an earlier run with their α, cut down to the budgets, each block by itself or all alike, and scaled to
    // what is worth most; w becomes their sum.
    void start(const PlaneBatch& planes, double* w);

    // How a visited block is moved.
    enum class Step {
        exact,        // solved: to a gap of at most solve_to × C_i
        pairs,        // Balamurugan et al. 2011: pairs exchange mass until their values differ by at most solve_to
        coordinates,  // Chang and Yih 2013: each α once, the newest first, the others in random order
    };
    struct Rule {
        Step step = Step::exact;
        // A plane that the oracle finds joins if it is worth so much more than what is paid: than the best plane known (exact), than
        // the lowest that carries mass (pairs), than Σα / 2C (coordinates).
        double insert_above = 0.0;
        // A block is left as it is up to this: gap / C_i (exact), difference of values (pairs), largest derivative (coordinates).
        double solve_above = 0.0;
        double solve_to = 0.0;
        size_t max_planes = 1 << 30;  // beyond it planes without mass leave, those of least value first
        bool drops_empty = false;     // planes without mass leave at once
        uint64_t seed = 0;            // of the random order
        bool searches = true;         // by components: visits look for the best output within their stretch; else those of a pass take the oracle's
        double search_work = 0.0;     // what that takes beside reading the rows, in rows
        int64_t search_batch = 1;     // so many such visits search at once, by several threads, at the same w
        int64_t patience = std::numeric_limits<int64_t>::max();  // a sweep leaves out blocks that so many visits have not moved
        // Over-relaxation, from 1 to less than 2, for the hinge and for exact steps and pairs: blocks move as if the dual were so
        // much flatter than it is, beyond what is best for them alone. Those that pull at the same weights get there sooner.
        double relaxation = 1.0;
    };
    struct Sweep {
        double gap = 0.0;          // Σ over blocks of the block's own duality gap when it was visited
        double passed_over = 0.0;  // what of it blocks have that were left as they are
        double gain = 0.0;         // of the dual
        double violation = 0.0;    // the largest: as solve_above measures it
        int64_t steps = 0;         // of the small QPs
        int64_t added = 0, dropped = 0;
        int64_t visits = 0, moves = 0;  // of blocks
        double work = 0.0;              // what was read, in rows of features
        std::vector<int64_t> moved;  // the examples that were not solved yet
    };
    // Visits the listed examples in turn, at their planes alone. One that is broken off leaves a w that has to be summed anew.
    Sweep sweep(std::span<const int64_t> order, const Rule& rule, MovingWeights w, const Workers& workers);
    // The same with a plane of the oracle for each, asked for batch_size examples at a time at the w that the batch begins with.
    Sweep pass(Oracle& oracle, std::span<const int64_t> order, int64_t batch_size, const Rule& rule, MovingWeights w, const Workers& workers);

    // The planes of all blocks as one problem, for steps that move every α at once. It is good until planes join or leave; w has to be
    // summed anew after it was taken over.
    std::unique_ptr<JointBlocks> joint();

    // Other budgets, 0 where the old ones are: α becomes the multiple of itself that is worth most under them, and so does w, the
    // weights of α. A first guess for a problem that differs by C only; every block counts as one that may move. Returns
    // the dual.
    double rescale(std::vector<double> budgets, double* w);

    // Σ α Δ − the quadratic term of the squared hinge: the dual is this − ½‖w‖².
    double linear_part() const;
    // w = Σ α ψ recomputed from the planes and α, without μ.
    void sum(double* w) const;
    // The same with μ: negative parts of the non-negative weights cut off. Steps go on from these sums, whatever rounding has
    // left in those that they moved.
    void weights(double* w);
    // Σ α ψ as a vector of the planes' parts, whether or not w is one: where it holds scores, the coefficients that they come of.
    void coefficients(double* out) const;

    // max(0, Δ − w·ψ) over each listed example's planes.
    std::vector<double> slacks(std::span<const int64_t> ids, const double* w) const;

    // Those of the listed examples with a plane that is worth more than values[k] for ids[k], by more than rounding can do.
    std::vector<int64_t> exceeding(std::span<const int64_t> ids, std::span<const double> values, const double* w) const;

    // Called once per QP: drops planes whose α has been 0 in the last prune_after of them. Returns how many.
    int64_t prune(int64_t prune_after);

    const PlaneSpace& space() const { return *space_; }
    bool is_squared() const { return squared_; }
    std::span<const double> budgets() const { return budgets_; }
    int64_t n_planes() const { return n_planes_; }
    int64_t n_blocks() const;
    // All planes, by example.
    PlaneBatch planes() const;
    int64_t n_active() const;
    // The examples with α > 0, in their order.
    std::vector<int64_t> carriers() const;

  private:
    // A plane that may join a block.
    struct Candidate {
        Code code;
        double loss;
    };
    struct Memory;
    class Joint;

    // Σα / 2C of the squared hinge.
    double shift(const Block& block) const { return squared_ ? block.total() / (2.0 * block.budget) : 0.0; }
    // memory.values[p] = the derivative of the dual with respect to α_p: Δ − w·ψ, less Σα / 2C for the squared hinge. A candidate,
    // already written out behind the block's planes, comes last.
    void value_block(const Block& block, WeightsView w, const Candidate* candidate = nullptr, int64_t next_row = -1, bool all_rows = false) const;
    // Calls use(block, candidate) for the blocks that a plane of the example belongs to, each with its share of the plane, after
    // making or merging blocks for it.
    template <class Use>
    void distribute(int64_t example, const Candidate& plane, Use&& use);
    bool is_touched(const Block& block) const;
    // Whether an example has a block for each stretch.
    bool is_parted(int64_t example) const { return by_components_ && space_->is_worth_parting(static_cast<int32_t>(example)); }
    bool searches_at_once(const Rule& rule) const { return by_components_ && rule.searches && rule.search_batch > 1; }
    void visit_one_of(std::span<Block* const> blocks, int64_t v, const Rule& rule, MovingWeights w, Sweep& result,
                      const Candidate* candidate = nullptr);
    void keep_share(const Block& block, Code code, size_t k) const;
    void visit_all(std::vector<Block*>& blocks, const Rule& rule, MovingWeights w, const Workers& workers, Sweep& result);
    void search_all(std::span<Block* const> blocks, WeightsView w, const Workers& workers) const;
    void make_room(int64_t example, Code code);
    void merge(Block& into, const Block& other);
    void split_blocks(std::vector<Block>& own);
    bool stretches(Block& block, std::vector<Span>& spans) const;
    void append_stretch(const Block& block, Span span, std::vector<Block>& pieces);
    void visit(Block& block, const Candidate* candidate, const Rule& rule, MovingWeights w, Sweep& result, int64_t next_row = -1);
    bool find_within(const Block& block, WeightsView w, Candidate& found) const;
    bool joins(const Block& block, const Rule& rule) const;
    double violation(const Block& block, const Rule& rule, double gap) const;
    void check(const Rule& rule) const;
    int64_t solve(Block& block, const Rule& rule);
    void unbend(Block& block, const Rule& rule);
    void drop_planes(Block& block, const Rule& rule, Sweep& result);
    void move(const Block& block, MovingWeights w);
    bool insert(Block& block, const Candidate& plane, const double* w, double epsilon);
    struct Multiple {
        double factor, worth;  // of α, and D there
    };
    Multiple best_multiple(double norm2) const;
    // ‖w‖² of the w of α.
    double norm2(const double* w) const;
    // Returns whether α was beyond it.
    bool cut_to_budget(Block& block) const;
    template <class Use>
    void for_each_block(Use&& use) const {
        for (const std::vector<Block>& own : blocks_)
            for (const Block& block : own) use(block);
    }

    std::shared_ptr<const PlaneSpace> space_;
    std::unique_ptr<Memory> memory_;  // scratch can be as long as w: it is made once
    std::vector<double> budgets_;
    bool squared_;
    NonnegativeWeights nonnegative_;  // with their sums Σ α ψ
    std::vector<std::vector<Block>> blocks_;  // by example
    bool by_components_;
    int64_t n_planes_ = 0;
};

}  // namespace maxmargin
