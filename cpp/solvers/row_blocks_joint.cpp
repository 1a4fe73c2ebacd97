// All rows' planes as one problem: every wrong label is a plane, and a pass over the rows scores them all.
#include <algorithm>
#include <limits>

#include "solvers/joint_blocks.hpp"
#include "solvers/row_blocks.hpp"
#include "solvers/row_blocks_memory.hpp"

namespace maxmargin {

namespace {
constexpr int64_t rows_per_run = 256;
}

class RowBlocks::Joint : public JointBlocks {
  public:
    explicit Joint(RowBlocks& rows);

    int64_t n_weights() const override { return rows_.space_->n_weights(); }
    void values(const double* w, double* out) override;
    void dots(size_t block, const double* vector, double* out) override;
    void add(size_t block, const double* coefficients, double* vector) override;
    void take(const std::vector<double>& alpha) override;

  private:
    bool is_sign() const { return rows_.labels_.is_sign; }
    // A sign has one plane; else the truth has one, too, which is never to have mass.
    int64_t planes_per_row() const { return is_sign() ? 1 : rows_.n_labels_; }
    void add_masses(int64_t example);

    RowBlocks& rows_;
    std::vector<int64_t> examples_;  // by block
    std::vector<double> scores_;
};

std::unique_ptr<JointBlocks> RowBlocks::joint() { return std::make_unique<Joint>(*this); }

RowBlocks::Joint::Joint(RowBlocks& rows) : rows_(rows) {
    const auto n_examples = static_cast<size_t>(rows.space_->n_examples());
    losses.reserve(n_examples * planes_per_row());
    alpha.reserve(n_examples * planes_per_row());
    for (int64_t i = 0; i < rows.space_->n_examples(); ++i) {
        if (i % rows_per_run == 0) heartbeat();
        if (rows.budgets_[i] <= 0.0) continue;
        examples_.push_back(i);
        budgets.push_back(rows.budgets_[i]);
        add_masses(i);
        starts.push_back(losses.size());
    }
}

void RowBlocks::Joint::add_masses(int64_t example) {
    if (is_sign()) {
        losses.push_back(rows_.loss(example, 0));
        alpha.push_back(rows_.alpha_[example]);
        return;
    }
    const size_t first = alpha.size();
    for (int32_t label = 0; label < rows_.n_labels_; ++label) {
        losses.push_back(label == rows_.truth_[example] ? 0.0 : rows_.loss(example, label));
        alpha.push_back(0.0);
    }
    for (const LabelMass& mass : rows_.masses_.of(example)) alpha[first + mass.label] = mass.alpha;
}

void RowBlocks::Joint::values(const double* w, double* out) {
    const int64_t n_examples = rows_.space_->n_examples(), stride = rows_.stride_;
    size_t block = 0;
    for (int64_t first = 0; first < n_examples && block < examples_.size(); first += rows_per_run) {
        heartbeat();
        const int64_t n_rows = std::min(rows_per_run, n_examples - first);
        scores_.resize(n_rows * stride);
        score_rows(ScoreTask<double>{&rows_.features_, nullptr, first, n_rows, w, static_cast<int>(stride), scores_.data()});
        for (; block < examples_.size() && examples_[block] < first + n_rows; ++block) {
            const int64_t example = examples_[block];
            const double* scores = scores_.data() + (example - first) * stride;
            if (is_sign()) {
                const double loss = losses[starts[block]];
                out[starts[block]] = loss - rows_.factor(loss) * rows_.truth_[example] * *scores;
            } else {
                rows_.value_labels(example, scores, *rows_.memory_);
                std::copy_n(rows_.memory_->values.begin(), planes_per_row(), out + starts[block]);
            }
        }
    }
}

void RowBlocks::Joint::dots(size_t block, const double* vector, double* out) {
    const int64_t example = examples_[block];
    scores_.resize(rows_.stride_);
    score_rows(ScoreTask<double>{&rows_.features_, nullptr, example, 1, vector, rows_.stride_, scores_.data()});
    const int32_t truth = rows_.truth_[example];
    for (int64_t k = 0; k < planes_per_row(); ++k) {
        const double product = is_sign() ? truth * scores_[0] : scores_[truth] - scores_[k];
        out[k] = rows_.factor(losses[starts[block] + k]) * product;
    }
}

void RowBlocks::Joint::add(size_t block, const double* coefficients, double* vector) {
    const int64_t example = examples_[block];
    const int32_t truth = rows_.truth_[example];
    if (is_sign()) {
        const double a = truth * coefficients[0] * rows_.factor(losses[starts[block]]);
        rows_.features_.for_each(example, [&](int64_t f, double x) { vector[f] += a * x; });
        return;
    }
    std::vector<LabelMass>& changes = rows_.memory_->changes;
    changes.clear();
    double total = 0.0;
    for (int32_t label = 0; label < rows_.n_labels_; ++label) {
        const double a = coefficients[label] * rows_.factor(losses[starts[block] + label]);
        if (a == 0.0 || label == truth) continue;
        changes.push_back({label, -a});
        total += a;
    }
    changes.push_back({truth, total});
    rows_.features_.for_each(example, [&](int64_t f, double x) {
        double* at = vector + f * rows_.stride_;
        for (const LabelMass& change : changes) at[change.label] += change.alpha * x;
    });
}

void RowBlocks::Joint::take(const std::vector<double>& taken) {
    std::vector<LabelMass>& kept = rows_.memory_->kept;
    for (size_t block = 0; block < examples_.size(); ++block) {
        const int64_t example = examples_[block];
        if (is_sign()) {
            rows_.alpha_[example] = taken[starts[block]];
            continue;
        }
        kept.clear();
        for (size_t p = starts[block]; p < starts[block + 1]; ++p)
            if (taken[p] > 0.0) kept.push_back({static_cast<int32_t>(p - starts[block]), taken[p]});
        rows_.masses_.set(example, kept);
    }
}

}  // namespace maxmargin
