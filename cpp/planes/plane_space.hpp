// What a solver may do with planes, knowing nothing of what they stand for.
//
// A plane of example i is (Δ, ψ) with value Δ − w·ψ. ψ = δΨ = Ψ(truth) − Ψ(output) under margin rescaling and Δ·δΨ under
// slack rescaling; the space applies that factor, so solvers never see the difference.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "planes/nonnegative_weights.hpp"
#include "planes/plane_batch.hpp"
#include "planes/plane_parts.hpp"

namespace maxmargin {

enum class Rescaling { margin, slack };

// Places of a code, begin … end − 1.
struct Span {
    int64_t begin, end;
    // Whether two outputs that differ from the truth in these places share a part: neighbours do.
    bool touches(const Span& other) const { return begin <= other.end && other.begin <= end; }
};

// The point in feature space, in double, as a float copy, or both. Where the copy is given it is used: to find planes and
// to compare them, never for a value that is reported.
struct WeightsView {
    const double* exact;
    const float* rounded = nullptr;
};

// The point in feature space as a pass moves it. Where the float copy is given it alone is moved: half the memory is touched,
// and the exact weights are summed anew from the planes afterwards. Weights that must be ≥ 0 are given where their sums are to move
// with them.
struct MovingWeights {
    double* exact;
    float* rounded = nullptr;
    NonnegativeWeights* nonnegative = nullptr;
    operator WeightsView() const { return {exact, rounded}; }

    // use(add), where add(j, change) moves one weight: it is chosen once for all of them.
    template <class Use>
    void with_add(Use&& use) const {
        if (rounded) with_add_to(rounded, use);
        else with_add_to(exact, use);
    }

    void clip(int64_t j) const {
        if (exact[j] < 0.0 && nonnegative->has(j)) {
            exact[j] = 0.0;
            if (rounded) rounded[j] = 0.0f;
        }
    }

  private:
    template <class Scalar, class Use>
    void with_add_to(Scalar* w, Use&& use) const {
        if (nonnegative) use([w, sums = nonnegative](int64_t j, double change) { sums->add(j, change, w); });
        else use([w](int64_t j, double change) { w[j] += static_cast<Scalar>(change); });
    }
};

// Scratch memory of one thread, made by the space that uses it.
struct PlaneScratch {
    virtual ~PlaneScratch() = default;
    PlaneParts planes;
};

class PlaneSpace {
  public:
    explicit PlaneSpace(Rescaling rescaling) : rescaling_(rescaling) {}
    virtual ~PlaneSpace() = default;

    virtual int64_t n_examples() const = 0;
    virtual int64_t n_weights() const = 0;
    virtual std::unique_ptr<PlaneScratch> scratch() const = 0;
    // Whether w is a vector of the feature space. Where it is not it holds scores, what is read of it are products with planes, and
    // moving it by planes is not adding them up: that gives the coefficients that scores come of.
    virtual bool has_vectors() const { return true; }

    // Throws std::invalid_argument if a plane cannot be one of this space: those that a caller kept may belong to another
    // problem, and everything below trusts example numbers and codes.
    void check(const PlaneBatch& planes) const;
    // The same, and if there are two of one example.
    void check_one_each(const PlaneBatch& planes) const;

    // Writes ψ out as one more of an example's planes.
    virtual void write(int32_t example, Code code, double loss, PlaneParts& planes, PlaneScratch& scratch) const = 0;
    // out[p] = w·ψ_p. A row that is needed next may be fetched meanwhile; all rows are scored on request, not only those needed.
    virtual void dots(const PlaneParts& planes, WeightsView w, PlaneScratch& scratch, double* out, int64_t next_row = -1, bool all_rows = false) const = 0;
    // Ask for what products with the planes will read: where their rows begin, and some time after that the rows.
    virtual void fetch_starts(const PlaneParts& planes) const { (void)planes; }
    virtual void fetch_rows(const PlaneParts& planes) const { (void)planes; }
    // w += Σ_p coefficients[p] ψ_p, each weight written once.
    virtual void add(const PlaneParts& planes, const double* coefficients, MovingWeights w, PlaneScratch& scratch) const = 0;
    // w_j = max(0, w_j), in both copies, for those of the planes' weights that must be ≥ 0. Their sums are left alone.
    virtual void clip(const PlaneParts& planes, MovingWeights w) const = 0;
    // out[p] = ψ_plane·ψ_p
    virtual void inner(const PlaneParts& planes, size_t plane, PlaneScratch& scratch, double* out) const = 0;

    // out[k] = w·ψ_k for planes of one example.
    void dots(int32_t example, std::span<const Code> codes, std::span<const double> losses, WeightsView w,
              PlaneScratch& scratch, double* out) const;
    // w += a ψ, a vector whether or not the space has_vectors
    void add(int32_t example, Code code, double loss, double a, double* w, PlaneScratch& scratch) const;
    // Whether every ψ is a vector of integers whose sums over the examples, one plane of each, fit in 32 bits.
    virtual bool has_counts() const { return false; }
    // sum += ψ, where has_counts.
    virtual void count(int32_t example, Code code, int32_t* sum, PlaneScratch& scratch) const {
        (void)example, (void)code, (void)sum, (void)scratch;
    }
    // out[k] = ψ·ψ_k for planes of one example.
    void inner(int32_t example, Code code, double loss, std::span<const Code> others, std::span<const double> losses,
               PlaneScratch& scratch, double* out) const;

    // Whether outputs that differ from the truth in places that do not touch can be combined, Δ and ψ being sums over them.
    virtual bool has_components() const { return false; }
    // Whether that is worth while for an example: the codes of its planes are as long as it is, each of its stretches has some, and
    // a long one has many of both.
    virtual bool is_worth_parting(int32_t example) const {
        (void)example;
        return false;
    }
    // The components in which a code differs from the truth within a span: spans of which no two touch.
    virtual void components(int32_t example, Code code, Span within, std::vector<Span>& spans) const {
        (void)example, (void)code, (void)within, (void)spans;
    }
    // Writes the output that is `inside` within the span and `outside` elsewhere (the truth if that is empty); returns its loss.
    virtual double combine(int32_t example, Code inside, Span span, Code outside, std::vector<int32_t>& code) const {
        (void)example, (void)inside, (void)span, (void)outside, (void)code;
        return 0.0;
    }

    // Makes sure that the rows of a span are scored with the planes, whether or not these need them.
    virtual void cover(int32_t example, Span span, PlaneParts& planes) const { (void)example, (void)span, (void)planes; }
    // The best output that is the truth outside the span, at the scores that the last dots with these planes computed: rows of the
    // span are covered. Returns whether it is not the truth.
    virtual bool search_within(int32_t example, Span span, const PlaneParts& planes, WeightsView w, PlaneScratch& scratch,
                               std::vector<int32_t>& code, double& loss, double& product) const {
        (void)example, (void)span, (void)planes, (void)w, (void)scratch, (void)code, (void)loss, (void)product;
        return false;
    }

    // Says that w has changed otherwise than by add with this scratch: what the scratch knows of it for search_within is of the past.
    virtual void forget(PlaneScratch& scratch) const { (void)scratch; }
    // Moves w by what add has put off, which dots and search_within with this scratch know of: before anything else reads w.
    virtual void settle(MovingWeights w, PlaneScratch& scratch) const { (void)w, (void)scratch; }

    // By how much rounding can falsify the value of a plane, given w·ψ and ‖w‖: what is less proves nothing.
    double rounding(int32_t example, Code code, double loss, double product, double norm, PlaneScratch& scratch) const;
    // The same of a sum of planes, given its ‖ψ‖².
    static double rounding(double loss, double product, double norm, double square);

    Rescaling rescaling() const { return rescaling_; }
    double factor(double loss) const { return rescaling_ == Rescaling::slack ? loss : 1.0; }

  protected:
    virtual bool is_code(int32_t example, Code code) const = 0;
    // w += a δΨ, before rescaling.
    virtual void add_difference(int32_t example, Code code, double a, double* w, PlaneScratch& scratch) const = 0;

  private:
    Rescaling rescaling_;
};

}  // namespace maxmargin
