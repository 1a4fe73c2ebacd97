// Planes of a built-in model: linear scores (row features × labels, plus a table) under any structure.
//
// Weights: W[feature * stride + label], labels contiguous and padded, then the structure's table. Plane arithmetic is
// written once over the parts a structure lists.
#pragma once

#include <memory>
#include <vector>

#include "planes/plane_space.hpp"
#include "planes/variants.hpp"
#include "scores/features.hpp"
#include "scores/kernels.hpp"
#include "structures/structure.hpp"
#include "threads/parallel.hpp"

namespace maxmargin {

// The sum of a full pass: Σ s_i Δ_i and Σ s_i ψ_i over the planes found.
struct ReducedCut {
    double loss = 0.0;
    int64_t n_planes = 0;
    std::vector<double> sum;
};

class LinearSpace : public PlaneSpace {
  public:
    LinearSpace(const Features& features, std::shared_ptr<const Structure> structure, Rescaling rescaling);

    int64_t n_examples() const override { return structure_->n_examples(); }
    int64_t n_weights() const override { return table_start() + structure_->n_table(); }
    int64_t table_start() const { return features_.n_features * stride_; }
    int stride() const { return stride_; }
    const Structure& structure() const { return *structure_; }
    const Features& features() const { return features_; }
    std::unique_ptr<PlaneScratch> scratch() const override;
    bool has_counts() const override { return has_counts_; }
    void count(int32_t example, Code code, int32_t* sum, PlaneScratch& scratch) const override;

    // Under slack rescaling ψ is a product with the loss, which is no sum over components.
    bool has_components() const override { return rescaling() == Rescaling::margin && structure_->has_components(); }
    bool is_worth_parting(int32_t example) const override {
        constexpr int64_t most_places = 2000;
        return structure_->code_length(example) <= most_places;
    }
    void components(int32_t example, Code code, Span within, std::vector<Span>& spans) const override;
    void cover(int32_t example, Span span, PlaneParts& planes) const override;
    bool search_within(int32_t example, Span span, const PlaneParts& planes, WeightsView w, PlaneScratch& scratch, std::vector<int32_t>& code,
                       double& loss, double& product) const override;
    void forget(PlaneScratch& scratch) const override;
    double combine(int32_t example, Code inside, Span span, Code outside, std::vector<int32_t>& code) const override;

    using PlaneSpace::add, PlaneSpace::dots, PlaneSpace::inner;
    void write(int32_t example, Code code, double loss, PlaneParts& planes, PlaneScratch& scratch) const override;
    void dots(const PlaneParts& planes, WeightsView w, PlaneScratch& scratch, double* out, int64_t next_row = -1, bool all_rows = false) const override;
    void fetch_starts(const PlaneParts& planes) const override;
    void fetch_rows(const PlaneParts& planes) const override;
    void add(const PlaneParts& planes, const double* coefficients, MovingWeights w, PlaneScratch& scratch) const override;
    void clip(const PlaneParts& planes, MovingWeights w) const override;
    void inner(const PlaneParts& planes, size_t plane, PlaneScratch& scratch, double* out) const override;

    // The plane of each listed example that the search at scale · w finds, search_kind() for the most violated one; those of
    // the truth are left out. On request with its value there.
    PlaneBatch separate(std::span<const int64_t> ids, WeightsView w, Search kind, const Workers& workers, double scale = 1.0, bool with_values = false) const;
    // Several outputs of each of these examples, where the structure has_places: see variants.hpp.
    Variants variants(std::span<const int64_t> ids, const double* w, const VariantOptions& options, const Workers& workers) const;
    // Turns the sum of some planes, at most one of each example, into that of others, by what differs; returns the change of their
    // losses. For margin rescaling: planes have no factors.
    double add_changes(const PlaneBatch& before, const PlaneBatch& after, const double* sample_weight, double* sum) const;
    // The planes of each listed example's k best outputs without loss, best first, where the structure has_k_best.
    PlaneBatch k_best(std::span<const int64_t> ids, const double* w, int64_t k) const;
    // The same for all examples, summed at once. For few weights: one buffer of n_weights per chunk.
    ReducedCut separate_and_sum(WeightsView w, const double* sample_weight, const Workers& workers) const;
    // The same at node scores on a line, all rows', for structures without a table.
    ReducedCut sum_on_line(Line line, const double* sample_weight, const Workers& workers) const;
    // What decoding takes beside scoring, in rows of features that could be read meanwhile, for each row: a guess.
    double decoding_work() const;
    Search search_kind() const { return rescaling() == Rescaling::slack ? Search::slack : Search::margin; }
    // Best outputs without loss: codes laid end to end, in the order of the examples.
    std::vector<int32_t> predict(WeightsView w, const Workers& workers) const;
    // Calls use(example, part scores) in double precision, for what is neither prediction nor training.
    template <class Use>
    void with_scores(int64_t example, const double* w, Use&& use) const;

  protected:
    struct Scratch;

    bool is_code(int32_t example, Code code) const override { return structure_->has_truth() && structure_->is_code(example, code); }
    void add_difference(int32_t example, Code code, double a, double* w, PlaneScratch& scratch) const override;
    // memory.products[k] = the product of a row with rows[k].
    virtual void multiply_rows(int64_t row, std::span<const int64_t> rows, Scratch& memory) const;
    // Moves w by the rows of the planes, each with the coefficients of its labels in memory.sums.
    virtual void add_rows(const PlaneParts& planes, Scratch& memory, MovingWeights w) const;
    void inner_by_rows(const PlaneParts& planes, size_t plane, Scratch& scratch, double* out) const;

  private:
    template <class Scalar>
    struct PassMemory;

    template <class Scalar>
    auto scorer(const Scalar* w, double scale) const;
    template <class Scalar, class Fill, class Found>
    void search_run(int64_t first, int64_t end, const Scalar* table, Search kind, PassMemory<Scalar>& memory, Fill&& fill,
                    Found&& found) const;
    template <class Scalar, class Fill>
    ReducedCut sum_found(const Scalar* table, const double* sample_weight, const Workers& workers, Fill&& fill) const;
    template <class Scalar, class Fill, class Found>
    void search_ids(std::span<const int64_t> ids, const Scalar* table, Search kind, PassMemory<Scalar>& memory, Fill&& fill, Found&& found) const;
    template <class Scalar>
    PlaneBatch separate_any(std::span<const int64_t> ids, const Scalar* w, Search kind, const Workers& workers, double scale, bool with_values) const;
    template <class Scalar>
    double value_found(int64_t example, Code code, double loss, const Scalar* table, double scale, PassMemory<Scalar>& memory) const;
    template <class Scalar>
    ReducedCut sum_any(const Scalar* w, const double* sample_weight, const Workers& workers) const;
    template <class Scalar>
    void dots_any(const PlaneParts& planes, const Scalar* w, std::vector<Scalar>& scores, double* out, int64_t next_row = -1, bool all_rows = false) const;
    template <class Scalar>
    void prepare_table(const Scalar* w, PassMemory<Scalar>& memory) const;
    template <class Scalar>
    bool search_within_any(int32_t example, Span span, const PlaneParts& planes, const Scalar* w, const std::vector<Scalar>& scores,
                           PassMemory<Scalar>& memory, std::vector<int32_t>& code, double& loss, double& product) const;
    void sum_by_label(const PlaneParts& planes, const double* coefficients, Scratch& memory) const;
    template <class Add>
    void add_label_sums(const PlaneParts& planes, const Scratch& memory, Add&& add) const;
    template <class Scalar>
    void note_moved_table(const PlaneParts& planes, const double* coefficients, PassMemory<Scalar>& memory) const;
    void multiply_ones(int64_t row, std::span<const int64_t> rows, Scratch& memory) const;
    void inner_by_weights(const PlaneParts& planes, size_t plane, Scratch& scratch, double* out) const;
    bool can_round() const;
    template <class Number>
    void add_parts(const Parts& parts, Number a, Number* w) const;

    Features features_;
    std::shared_ptr<const Structure> structure_;
    int stride_;
    bool has_counts_;
};

template <class Use>
void LinearSpace::with_scores(int64_t example, const double* w, Use&& use) const {
    std::vector<double> table;
    structure_->prepare(w + table_start(), stride_, table);
    const RowRange range = structure_->rows(example);
    std::vector<double> node(range.length() * stride_);
    score_rows(ScoreTask<double>{&features_, nullptr, range.begin, range.length(), w, stride_, node.data()});
    use(PartScores<double>{node.data(), stride_, table.data()});
}

}  // namespace maxmargin
