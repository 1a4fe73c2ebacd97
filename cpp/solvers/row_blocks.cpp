#include "solvers/row_blocks.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "solvers/best_multiple.hpp"
#include "solvers/random.hpp"
#include "solvers/row_blocks_memory.hpp"

namespace maxmargin {

namespace {
constexpr int64_t rows_per_run = 256;
constexpr int64_t runs_per_chunk = 8;
constexpr int64_t examples_per_poll = 1024;
}  // namespace

RowBlocks::RowBlocks(std::shared_ptr<const LinearSpace> space, std::vector<double> budgets, bool squared, std::shared_ptr<RowColumns> columns)
    : space_(std::move(space)),
      labels_(*space_->structure().row_labels()),
      squared_(squared),
      n_labels_(space_->structure().n_labels()),
      stride_(space_->stride()),
      budgets_(std::move(budgets)),
      features_(space_->features()),
      columns_(std::move(columns)),
      norms_(space_->n_examples()),
      alpha_(labels_.is_sign ? space_->n_examples() : 0),
      masses_(labels_.is_sign ? 0 : space_->n_examples()),
      memory_(std::make_unique<Memory>()) {
    truth_.assign(labels_.truth, labels_.truth + space_->n_examples());
    if (SparseCopy::pays(features_)) copy_rows();
    if (columns_) norms_.assign(columns_->diagonal().begin(), columns_->diagonal().end());
    else
        for (int64_t i = 0; i < space_->n_examples(); ++i) features_.for_each(i, [&](int64_t, double x) { norms_[i] += x * x; });
    const bool is_margin = space_->rescaling() == Rescaling::margin;
    is_uniform_.assign(n_labels_, true);
    if (!labels_.is_sign && !is_margin && labels_.loss.cost)
        for (int32_t truth = 0; truth < n_labels_; ++truth) {
            const double* cost = labels_.loss.cost + static_cast<int64_t>(truth) * n_labels_;
            const double some = cost[truth == 0 && n_labels_ > 1 ? 1 : 0];
            for (int32_t label = 0; label < n_labels_; ++label)
                if (label != truth && cost[label] != some) is_uniform_[truth] = false;
        }
    activate(0.0);
}

RowBlocks::~RowBlocks() = default;

void RowBlocks::copy_rows() {
    given_.resize(space_->n_examples());
    std::iota(given_.begin(), given_.end(), 0);
    Random random{0};
    random.shuffle(std::span(given_));
    copy_ = std::make_unique<SparseCopy>(features_, given_);
    features_ = copy_->view();
    const std::vector<double> budgets = budgets_;
    for (size_t k = 0; k < given_.size(); ++k) {
        budgets_[k] = budgets[given_[k]];
        truth_[k] = labels_.truth[given_[k]];
    }
}

double RowBlocks::loss(int64_t example, int32_t label) const {
    const int32_t truth = truth_[example];
    return labels_.is_sign ? labels_.sign_loss[truth > 0] : labels_.loss(given_number(example), truth, label, n_labels_);
}

// The block's share of P − D at fixed w: C ξ − Σ α F for the hinge, C H² − Σ α F + (Σα)² / 4C for the squared hinge, F = Δ − w·ψ.
double RowBlocks::gap(double highest, double paid, double total, double C) const {
    const double most = std::max(0.0, highest);
    return squared_ ? C * most * most - paid + total * (total / (4.0 * C)) : C * most - paid;
}

void RowBlocks::activate(double tolerance) {
    active_.clear();
    for (int64_t i = 0; i < space_->n_examples(); ++i)
        if (budgets_[i] > 0.0 && (gaps_.empty() || gaps_[i] > tolerance)) active_.push_back(static_cast<int32_t>(i));
}

// C_i H_i or C_i H_i², at these scores of its row.
template <class Scalar>
double RowBlocks::cost_of(int64_t example, const Scalar* scores, Memory& memory) {
    const double C = budgets_[example];
    if (C <= 0.0) return 0.0;
    double highest, paid, total = 0.0;
    if (labels_.is_sign) {
        const double delta = loss(example, 0);
        highest = delta - factor(delta) * truth_[example] * static_cast<double>(*scores);
        total = alpha_[example];
        paid = total * highest;
    } else {
        highest = value_labels(example, scores, memory);
        paid = paid_by(example, memory, total);
    }
    gaps_[example] = static_cast<float>(gap(highest, paid, total, C) / C);
    const double most = std::max(0.0, highest);
    return C * (squared_ ? most * most : most);
}

template <class Scalar>
double RowBlocks::evaluate_any(const Scalar* w, const Workers& workers) {
    // Chunks depend on n alone, so that sums are the same for any number of threads.
    const int64_t n = space_->n_examples(), chunk_size = rows_per_run * runs_per_chunk, n_chunks = (n + chunk_size - 1) / chunk_size;
    std::vector<double> costs(n_chunks, 0.0);
    std::vector<Memory> memory(std::max(workers.n_threads, 1));
    gaps_.resize(n, 0.0f);
    for_each_chunk(n_chunks, workers, [&](int64_t chunk, int thread) {
        std::vector<Scalar>& scores = memory[thread].scores<Scalar>();
        const int64_t end = std::min((chunk + 1) * chunk_size, n);
        for (int64_t first = chunk * chunk_size; first < end; first += rows_per_run) {
            const int64_t n_rows = std::min(rows_per_run, end - first);
            scores.resize(n_rows * stride_);
            score_rows(ScoreTask<Scalar>{&features_, nullptr, first, n_rows, w, stride_, scores.data()});
            for (int64_t r = 0; r < n_rows; ++r) costs[chunk] += cost_of(first + r, scores.data() + r * stride_, memory[thread]);
        }
    });
    return std::accumulate(costs.begin(), costs.end(), 0.0);
}

double RowBlocks::evaluate(WeightsView w, const Workers& workers) {
    return w.rounded ? evaluate_any(w.rounded, workers) : evaluate_any(w.exact, workers);
}

// Calls use(example, label, α) for all α > 0.
template <class Use>
void RowBlocks::for_each_mass(Use&& use) const {
    for (int64_t i = 0; i < space_->n_examples(); ++i) {
        if (i % examples_per_poll == 0) heartbeat();
        if (!labels_.is_sign) {
            for (const LabelMass& mass : masses_.of(i)) use(i, mass.label, mass.alpha);
        } else if (alpha_[i] > 0.0) {
            use(i, -truth_[i], alpha_[i]);
        }
    }
}

double RowBlocks::linear_part() const {
    double sum = 0.0, total = 0.0;
    int64_t last = -1;
    const auto close = [&] {
        if (squared_ && last >= 0) sum -= total * (total / (4.0 * budgets_[last]));
        total = 0.0;
    };
    for_each_mass([&](int64_t example, int32_t label, double alpha) {
        if (example != last) close();
        last = example;
        sum += alpha * loss(example, label);
        total += alpha;
    });
    close();
    return sum;
}

bool RowBlocks::start(const PlaneBatch& planes, bool all_alike) {
    std::vector<std::vector<LabelMass>> masses = masses_of(planes);
    const auto share = [&](int64_t i) {
        const std::vector<LabelMass>& own = masses[given_number(i)];
        const double total = std::accumulate(own.begin(), own.end(), 0.0, [](double sum, const LabelMass& mass) { return sum + mass.alpha; });
        return squared_ || total <= budgets_[i] ? 1.0 : budgets_[i] / total;
    };
    double least = 1.0;
    for (int64_t i = 0; i < space_->n_examples(); ++i)
        if (budgets_[i] > 0.0) least = std::min(least, share(i));
    for (int64_t i = 0; i < space_->n_examples(); ++i) {
        std::vector<LabelMass>& own = masses[given_number(i)];
        if (budgets_[i] <= 0.0) continue;
        const double factor = all_alike ? least : share(i);
        for (LabelMass& mass : own) mass.alpha *= factor;
        if (labels_.is_sign) alpha_[i] = own.empty() ? 0.0 : own.front().alpha;
        else masses_.set(i, own);
    }
    return least < 1.0;
}

// By given number; each label once.
std::vector<std::vector<LabelMass>> RowBlocks::masses_of(const PlaneBatch& planes) const {
    std::vector<std::vector<LabelMass>> masses(space_->n_examples());
    for (int64_t k = 0; k < planes.size(); ++k) {
        const int32_t label = planes.code(k).front();
        std::vector<LabelMass>& own = masses[planes.examples[k]];
        const bool is_new = std::none_of(own.begin(), own.end(), [&](const LabelMass& mass) { return mass.label == label; });
        if (is_new && label != labels_.truth[planes.examples[k]] && planes.alpha[k] > 0.0) own.push_back({label, planes.alpha[k]});
    }
    return masses;
}

// The multiple of α at which the first example has spent its budget.
double RowBlocks::most_growth() const {
    std::vector<double> totals(space_->n_examples(), 0.0);
    for_each_mass([&](int64_t example, int32_t, double alpha) { totals[example] += alpha; });
    double most = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < totals.size(); ++i)
        if (totals[i] > 0.0) most = std::min(most, budgets_[i] / totals[i]);
    return most;
}

// D(sα) = s Σ α Δ − ½ s² (‖w‖² + Σ_i (Σ_l α_il)² / 2C_i), the last for the squared hinge only; α of the hinge may grow as far as
// the budgets go.
double RowBlocks::rescale(double ratio, double norm2) {
    for (double& budget : budgets_) budget *= ratio;
    double linear = 0.0, quadratic = norm2;
    for_each_mass([&](int64_t example, int32_t label, double alpha) { linear += alpha * loss(example, label); });
    if (squared_) quadratic += 2.0 * (linear - linear_part());
    const double most = squared_ ? std::numeric_limits<double>::infinity() : most_growth();
    const double multiple = best_multiple(linear, quadratic, most);
    for (double& alpha : alpha_) alpha *= multiple;
    masses_.scale(multiple);
    return multiple;
}

void RowBlocks::weights(double* w) const {
    std::fill(w, w + space_->n_weights(), 0.0);
    for_each_mass([&](int64_t example, int32_t label, double alpha) {
        const double a = alpha * factor(loss(example, label));
        const int32_t truth = truth_[example];
        if (labels_.is_sign) features_.for_each(example, [&](int64_t f, double x) { w[f] += truth * a * x; });
        else
            features_.for_each(example, [&](int64_t f, double x) {
                w[f * stride_ + truth] += a * x;
                w[f * stride_ + label] -= a * x;
            });
    });
}

int64_t RowBlocks::n_planes() const {
    int64_t count = 0;
    for_each_mass([&](int64_t, int32_t, double) { ++count; });
    return count;
}

PlaneBatch RowBlocks::planes() const {
    PlaneBatch all;
    std::vector<double> alpha;
    for_each_mass([&](int64_t example, int32_t label, double mass) {
        all.add(static_cast<int32_t>(given_number(example)), loss(example, label), Code(&label, 1));
        alpha.push_back(mass);
    });
    all.alpha = std::move(alpha);
    return all;
}

}  // namespace maxmargin
