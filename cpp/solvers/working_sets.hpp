// Planes per example with their dual variables: the block problem that n-slack cutting planes and dual coordinate methods
// share.
//
//     hinge           max  Σ α Δ − ½‖w‖²                               Σ_p α_ip ≤ C_i
//     squared hinge   max  Σ α Δ − ½‖w‖² − Σ_i (Σ_p α_ip)² / 4C_i      no upper bound
//     α ≥ 0,  w = Σ α ψ + μ,  μ_j ≥ 0 on the non-negative weights and 0 elsewhere
//
// A visit values one example's planes at w, solves their small QP exactly and writes w once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "planes/oracle.hpp"
#include "planes/plane_space.hpp"
#include "threads/parallel.hpp"

namespace maxmargin {

class WorkingSets {
  public:
    // budgets: C_i = C s_i. An example with C_i = 0 never gets a plane.
    WorkingSets(std::shared_ptr<const PlaneSpace> space, std::vector<double> budgets, bool squared, std::vector<int64_t> nonnegative);
    ~WorkingSets();

    // Adds the planes whose value at w exceeds what their example already pays by more than epsilon. Returns how many.
    int64_t insert(const PlaneBatch& planes, const double* w, double epsilon);

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
        // A block is left as it is up to this: gap / C_i (exact), difference of values (pairs).
        double solve_above = 0.0;
        double solve_to = 0.0;
        size_t max_planes = 1 << 30;  // beyond it planes without mass leave, those of least value first
        bool drops_empty = false;     // planes without mass leave at once
        uint64_t seed = 0;            // of the random order
    };
    struct Sweep {
        double gap = 0.0;        // Σ over blocks of the block's own duality gap when it was visited
        double gain = 0.0;       // of the dual
        double violation = 0.0;  // the largest: as solve_above measures it
        int64_t steps = 0;       // of the small QPs
        int64_t added = 0, dropped = 0;
        std::vector<int64_t> moved;  // the examples that were not solved yet
        std::vector<int64_t> paying; // the examples with a plane worth more than 0
    };
    // Visits the listed examples in turn, at their planes alone.
    Sweep sweep(std::span<const int64_t> order, const Rule& rule, WeightsPair w, const Workers& workers);
    // The same with a plane of the oracle for each, asked for batch_size examples at a time at the w that the batch begins with.
    Sweep pass(Oracle& oracle, std::span<const int64_t> order, int64_t batch_size, const Rule& rule, WeightsPair w, const Workers& workers);

    struct Ascent {
        double gain = 0.0;     // of the dual
        int64_t products = 0;  // with the quadratic form; each costs about a visit of every example that has more than one choice
    };
    // Moves all α > 0 together by conjugate gradients until their values differ, within an example, by no more than tolerance
    // on average, or max_products are made or max_seconds gone. D does not decrease. With non-negative weights D is not
    // quadratic: nothing is done.
    Ascent ascend_face(double tolerance, int64_t max_products, double max_seconds, double* w, const Workers& workers);

    // Σ α Δ − the quadratic term of the squared hinge: the dual is this − ½‖w‖².
    double linear_part() const;
    // w = Σ α ψ recomputed from the planes and α, without μ.
    void sum(double* w) const;
    // The same with μ: negative parts of the non-negative weights cut off.
    void weights(double* w) const;

    // max(0, Δ − w·ψ) over each listed example's planes.
    std::vector<double> slacks(std::span<const int64_t> ids, const double* w) const;

    // Those of the listed examples with a plane that is worth more than values[k] for ids[k], by more than rounding can do.
    std::vector<int64_t> exceeding(std::span<const int64_t> ids, std::span<const double> values, const double* w) const;

    // Called once per QP: drops planes whose α has been 0 in the last prune_after of them. Returns how many.
    int64_t prune(int64_t prune_after);

    const PlaneSpace& space() const { return *space_; }
    int64_t n_planes() const { return n_planes_; }
    // All planes, by example.
    PlaneBatch planes() const;
    int64_t n_active() const;

  private:
    struct Entry {
        double loss;
        int64_t idle;  // QPs since α was positive
        uint32_t begin, length;
    };
    struct Block {
        PlaneParts parts;
        std::vector<Entry> entries;
        std::vector<double> alpha;
        std::vector<double> gram;  // entries × entries
        std::vector<int32_t> codes;
        size_t size() const { return entries.size(); }
        Code code(size_t e) const { return {codes.data() + entries[e].begin, entries[e].length}; }
        bool has(Code code, double loss) const;
    };
    // A plane that may join a block.
    struct Candidate {
        Code code;
        double loss;
    };
    struct Memory;
    struct Face;

    double total(size_t example) const;
    // Σα / 2C of the squared hinge.
    double shift(size_t example) const { return squared_ ? total(example) / (2.0 * budgets_[example]) : 0.0; }
    // What is not spent of the budget; infinite for the squared hinge.
    double mass_left(size_t example) const;
    // memory.values[p] = the derivative of the dual with respect to α_p: Δ − w·ψ, less Σα / 2C for the squared hinge. A candidate,
    // already written out behind the block's planes, comes last.
    void value_block(int64_t example, WeightsView w, const Candidate* candidate = nullptr) const;
    void visit(int64_t example, const Candidate* candidate, const Rule& rule, WeightsPair w, Sweep& result);
    bool joins(const std::vector<double>& values, int64_t example, const Rule& rule) const;
    double violation(int64_t example, const Rule& rule, double gap) const;
    int64_t solve(int64_t example, const Rule& rule);
    void drop_planes(Block& block, const Rule& rule, Sweep& result);
    void move(int64_t example, WeightsPair w);
    static int64_t climb(Face& face, double wanted, int64_t max_products, double max_seconds);
    void take(const Face& face);
    // The plane is written out already.
    void keep_plane(Block& block, const Candidate& plane);
    void erase(Block& block, const std::vector<bool>& drop);

    std::shared_ptr<const PlaneSpace> space_;
    std::unique_ptr<Memory> memory_;  // scratch can be as long as w: it is made once
    std::vector<double> budgets_;
    bool squared_;
    std::vector<int64_t> nonnegative_;
    std::vector<double> unclipped_;  // (Σ α ψ)_j for j in nonnegative_
    std::vector<Block> blocks_;
    int64_t n_planes_ = 0;
};

}  // namespace maxmargin
