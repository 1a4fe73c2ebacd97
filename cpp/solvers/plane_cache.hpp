// The oracle cache (Joachims, Finley and Yu 2009, section 4; SVM-struct's -w 4): the most recently used planes of each example.
//
// A cut can be composed from the caches alone. Two products are kept per plane, with the latest weights w it was valued at
// and with an anchor point, so that the best cached planes anywhere on the line through the two cost no scoring.
//
// With few weights, ψ of each plane may be kept too: a product is then one of short vectors, where it would read all rows in
// which the output differs from the truth.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "planes/plane_space.hpp"
#include "threads/parallel.hpp"

namespace maxmargin {

class PlaneCache {
  public:
    PlaneCache(std::shared_ptr<const PlaneSpace> space, int capacity, bool keeps_vectors = false);

    // Adds each plane to its example's cache; one already there counts as used, a full cache loses its oldest plane.
    void insert(const PlaneBatch& planes);

    // Forgets planes that no cut used in the last `age` calls of best.
    void drop_unused(int64_t age);

    // Replaces planes found at w by cached ones of the same example that are worth more there, and adds cached ones that are worth
    // more than 0 where none was found. Returns those examples: their search was not exact.
    std::vector<int32_t> improve(PlaneBatch& found, std::span<const int32_t> searched, const double* w) const;

    // Products of all planes with w.
    void evaluate(WeightsView w, const Workers& workers);
    // Products with the anchor of the planes that have none yet.
    void evaluate_anchor(WeightsView anchor, const Workers& workers);
    // anchor ← (1 − t) anchor + t w
    void move_anchor(double t);

    // The best plane of each example at (1 − t) anchor + t w, as a batch (examples whose best value is ≤ 0 left out). These
    // planes count as used.
    PlaneBatch best(double t);
    // Their sum, where vectors are kept: sum += Σ_i s_i ψ_i. Returns Σ_i s_i Δ_i.
    double add_best(double t, const double* sample_weight, double* sum);

    // d/dt of Σ_i s_i max(0, best value of i) at (1 − t) anchor + t w.
    double slope(double t, const double* sample_weight) const;

    const PlaneSpace& space() const { return *space_; }
    int64_t n_planes() const { return n_planes_; }
    bool keeps_vectors() const { return keeps_vectors_; }
    // All planes, by example.
    PlaneBatch planes() const;

  private:
    struct Entry {
        double loss;
        double at_w;
        double at_anchor;
        int64_t last_used;   // tick: which of a full cache's planes is the oldest
        int64_t last_cut;    // how many calls of best there were when a cut last used it
        uint32_t begin, length;  // of the code in codes
        bool has_anchor;
    };
    struct ExampleCache {
        std::vector<Entry> entries;
        std::vector<int32_t> codes;
        std::vector<double> vectors;  // ψ of each entry, end to end, where they are kept
        Code code(const Entry& entry) const { return {codes.data() + entry.begin, entry.length}; }
    };
    static double value(const Entry& entry, double t) { return entry.loss - ((1.0 - t) * entry.at_anchor + t * entry.at_w); }
    static int64_t best_entry(const ExampleCache& cache, double t);  // −1: none is worth more than 0
    static void replace(ExampleCache& cache, Entry& entry, Code code);
    void write_vector(int64_t example, size_t entry);
    // use(example, number of its entry) for the best plane of each example, which counts as used.
    template <class Use>
    void use_best(double t, Use&& use);
    template <class Scalar>
    double product(const ExampleCache& cache, size_t entry, const Scalar* w) const;
    template <class Store>
    void value_planes(WeightsView w, const Workers& workers, bool only_new, Store&& store);

    std::shared_ptr<const PlaneSpace> space_;
    size_t capacity_;
    bool keeps_vectors_;
    size_t n_weights_;
    std::unique_ptr<PlaneScratch> scratch_;
    int64_t tick_ = 0;
    int64_t n_cuts_ = 0;
    int64_t n_planes_ = 0;
    std::vector<ExampleCache> caches_;
};

}  // namespace maxmargin
