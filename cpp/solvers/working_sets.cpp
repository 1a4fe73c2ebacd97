#include "solvers/working_sets.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "solvers/best_multiple.hpp"
#include "solvers/components.hpp"
#include "solvers/working_sets_memory.hpp"

namespace maxmargin {

namespace {

constexpr double rounded_off = 1e-6;

}  // namespace

WorkingSets::WorkingSets(std::shared_ptr<const PlaneSpace> space, std::vector<double> budgets, bool squared, std::vector<int64_t> nonnegative,
                         bool by_components)
    : space_(std::move(space)),
      memory_(std::make_unique<Memory>()),
      budgets_(std::move(budgets)),
      squared_(squared),
      nonnegative_(std::move(nonnegative)),
      blocks_(space_->n_examples()),
      by_components_(by_components) {
    memory_->scratch = space_->scratch();
}

WorkingSets::~WorkingSets() { memory_->pool.end(); }

void WorkingSets::value_block(const Block& block, WeightsView w, const Candidate* candidate, int64_t next_row, bool all_rows) const {
    std::vector<double>& values = memory_->values;
    values.resize(block.parts.size());
    if (values.empty() && block.parts.rows.empty()) return;
    space_->dots(block.parts, w, *memory_->scratch, values.data(), next_row, all_rows);
    const double taken = shift(block);
    for (size_t p = 0; p < block.size(); ++p) values[p] = block.entries[p].loss - values[p] - taken;
    if (candidate) values.back() = candidate->loss - values.back() - taken;
}

int64_t WorkingSets::insert(const PlaneBatch& planes, const double* w, double epsilon) {
    int64_t added = 0;
    for (int64_t k = 0; k < planes.size(); ++k) {
        heartbeat();
        if (budgets_[planes.examples[k]] <= 0.0) continue;
        distribute(planes.examples[k], {planes.code(k), planes.losses[k]},
                   [&](Block& block, const Candidate& plane) { added += insert(block, plane, w, epsilon); });
    }
    return added;
}

bool WorkingSets::insert(Block& block, const Candidate& plane, const double* w, double epsilon) {
    if (block.has(plane.code, plane.loss)) return false;
    const size_t n_rows = block.parts.rows.size();
    space_->write(block.example, plane.code, plane.loss, block.parts, *memory_->scratch);
    value_block(block, {w}, &plane);
    const std::vector<double>& values = memory_->values;
    const double paid = std::accumulate(values.begin(), values.end() - 1, 0.0, [](double a, double b) { return std::max(a, b); });
    if (values.back() <= paid + epsilon) {
        block.parts.pop(n_rows);
        return false;
    }
    block.keep(plane.code, plane.loss, *space_, *memory_->scratch);
    ++n_planes_;
    return true;
}

void WorkingSets::start(const PlaneBatch& planes, double* w) {
    for (int64_t k = 0; k < planes.size(); ++k) {
        heartbeat();
        if (budgets_[planes.examples[k]] <= 0.0) continue;
        distribute(planes.examples[k], {planes.code(k), planes.losses[k]}, [&](Block& block, const Candidate& plane) {
            const size_t known = block.find(plane.code, plane.loss);
            if (known == block.size()) {
                space_->write(block.example, plane.code, plane.loss, block.parts, *memory_->scratch);
                block.keep(plane.code, plane.loss, *space_, *memory_->scratch);
                ++n_planes_;
            }
            block.alpha[known] += planes.alpha[k];
        });
    }
    // Where budgets are smaller than those of the earlier run: all α by one factor, or each block by its own?
    const auto square = [&] {
        weights(w);
        return norm2(w);
    };
    const double together = best_multiple(square()).worth;
    std::vector<double> uncut;
    bool is_cut = false;
    for (std::vector<Block>& own : blocks_)
        for (Block& block : own) {
            uncut.insert(uncut.end(), block.alpha.begin(), block.alpha.end());
            is_cut |= cut_to_budget(block);
        }
    if (is_cut && best_multiple(square()).worth < together) {
        auto next = uncut.begin();
        for (std::vector<Block>& own : blocks_)
            for (Block& block : own) {
                std::copy_n(next, block.size(), block.alpha.begin());
                next += static_cast<std::ptrdiff_t>(block.size());
            }
        weights(w);
    }
    rescale(budgets_, w);
}

bool WorkingSets::cut_to_budget(Block& block) const {
    const double total = block.total();
    if (squared_ || total <= block.budget) return false;
    for (double& a : block.alpha) a *= block.budget / total;
    return true;
}

double WorkingSets::rescale(std::vector<double> budgets, double* w) {
    budgets_ = std::move(budgets);
    for (std::vector<Block>& own : blocks_)
        for (Block& block : own) {
            block.budget = budgets_[block.example];
            block.quiet = 0;
        }
    const int64_t n_weights = space_->n_weights();
    const auto [multiple, worth] = best_multiple(norm2(w));
    for (std::vector<Block>& own : blocks_)
        for (Block& block : own) {
            for (double& a : block.alpha) a *= multiple;
            cut_to_budget(block);  // what rounding puts above it
        }
    for (int64_t j = 0; j < n_weights; ++j) w[j] *= multiple;
    nonnegative_.multiply_sums(multiple);
    return worth;
}

// D(sα) = s Σ α Δ − ½ s² (‖w‖² + Σ_i (Σ_p α_ip)² / 2C_i), the last for the squared hinge only; for the hinge no block may exceed its
// budget.
WorkingSets::Multiple WorkingSets::best_multiple(double norm2) const {
    double linear = 0.0, quadratic = norm2, most = std::numeric_limits<double>::infinity();
    for_each_block([&](const Block& block) {
        const double total = block.total();
        if (total <= 0.0) return;
        for (size_t p = 0; p < block.size(); ++p) linear += block.alpha[p] * block.entries[p].loss;
        if (squared_) quadratic += total * (total / (2.0 * block.budget));
        else most = std::min(most, block.budget / total);
    });
    const double best = maxmargin::best_multiple(linear, quadratic, most);
    return {best, best * linear - 0.5 * best * best * quadratic};
}

double WorkingSets::norm2(const double* w) const {
    if (space_->has_vectors()) return std::inner_product(w, w + space_->n_weights(), w, 0.0);
    std::vector<double> products;
    double sum = 0.0;
    for_each_block([&](const Block& block) {
        if (block.n_carriers() == 0) return;
        products.resize(block.size());
        space_->dots(block.parts, {w}, *memory_->scratch, products.data());
        sum += std::inner_product(products.begin(), products.end(), block.alpha.begin(), 0.0);
    });
    return sum;
}

double WorkingSets::linear_part() const {
    double sum = 0.0;
    for_each_block([&](const Block& block) {
        double total = 0.0;
        for (size_t p = 0; p < block.size(); ++p) {
            sum += block.alpha[p] * block.entries[p].loss;
            total += block.alpha[p];
        }
        if (squared_ && total > 0.0) sum -= total * (total / (4.0 * block.budget));
    });
    return sum;
}

void WorkingSets::weights(double* w) {
    // Millions of small steps put α above its budget by what each of them rounded, and the dual above the optimum. (What is far above it comes
    // from an earlier run with other budgets, and is seen to as a whole.)
    for (std::vector<Block>& own : blocks_)
        for (Block& block : own)
            if (block.total() < (1.0 + rounded_off) * block.budget) cut_to_budget(block);
    sum(w);
    nonnegative_.take_sums(w);
}

void WorkingSets::sum(double* w) const {
    std::fill(w, w + space_->n_weights(), 0.0);
    const KnownWeights known(*space_, *memory_->scratch);
    std::vector<const Block*> carriers;
    for_each_block([&](const Block& block) {
        if (block.n_carriers() > 0) carriers.push_back(&block);
    });
    const size_t n = carriers.size();
    for (size_t b = 0; b < n; ++b) {
        heartbeat();
        if (b + 4 < n) carriers[b + 4]->fetch_data();
        if (b + 3 < n) space_->fetch_starts(carriers[b + 3]->parts);
        if (b + 2 < n) space_->fetch_rows(carriers[b + 2]->parts);
        space_->add(carriers[b]->parts, carriers[b]->alpha.data(), {w}, *memory_->scratch);
    }
    space_->settle({w}, *memory_->scratch);
}

void WorkingSets::coefficients(double* out) const {
    std::fill(out, out + space_->n_weights(), 0.0);
    for_each_block([&](const Block& block) {
        heartbeat();
        for (size_t p = 0; p < block.size(); ++p)
            if (block.alpha[p] > 0.0) space_->add(block.example, block.code(p), block.entries[p].loss, block.alpha[p], out, *memory_->scratch);
    });
}

std::vector<double> WorkingSets::slacks(std::span<const int64_t> ids, const double* w) const {
    std::vector<double> out;
    for (const int64_t example : ids) {
        heartbeat();
        double sum = 0.0;
        for (const Block& block : blocks_[example]) {
            value_block(block, {w});
            const double taken = shift(block);
            double most = 0.0;
            for (const double value : memory_->values) most = std::max(most, value + taken);
            sum += most;
        }
        out.push_back(sum);
    }
    return out;
}

std::vector<int64_t> WorkingSets::exceeding(std::span<const int64_t> ids, std::span<const double> values, const double* w) const {
    const double norm = std::sqrt(norm2(w));
    std::vector<int64_t> out;
    for (size_t k = 0; k < ids.size(); ++k) {
        heartbeat();
        const auto exceeds = [&](const Block& block) {
            std::vector<double> products(block.size());
            space_->dots(block.parts, {w}, *memory_->scratch, products.data());
            for (size_t p = 0; p < block.size(); ++p) {
                const double loss = block.entries[p].loss, excess = loss - products[p] - values[k];
                if (excess > 0.0 && excess > 1e-9 * values[k] + space_->rounding(block.example, block.code(p), loss, products[p], norm, *memory_->scratch)) return true;
            }
            return false;
        };
        if (std::any_of(blocks_[ids[k]].begin(), blocks_[ids[k]].end(), exceeds)) out.push_back(ids[k]);
    }
    return out;
}

int64_t WorkingSets::prune(int64_t prune_after) {
    int64_t dropped = 0;
    std::vector<bool> drop;
    for (std::vector<Block>& own : blocks_)
        for (Block& block : own) {
            drop.assign(block.size(), false);
            int64_t n_idle = 0;
            for (size_t e = 0; e < block.size(); ++e) {
                block.entries[e].idle = block.alpha[e] > 0.0 ? 0 : block.entries[e].idle + 1;
                drop[e] = block.entries[e].idle >= prune_after;
                n_idle += drop[e];
            }
            if (n_idle > 0) block.erase(drop);
            dropped += n_idle;
        }
    n_planes_ -= dropped;
    return dropped;
}

PlaneBatch WorkingSets::planes() const {
    PlaneBatch all;
    std::vector<double> alpha;
    for_each_block([&](const Block& block) {
        for (size_t e = 0; e < block.size(); ++e) all.add(block.example, block.entries[e].loss, block.code(e));
        alpha.insert(alpha.end(), block.alpha.begin(), block.alpha.end());
    });
    all.alpha = std::move(alpha);
    return all;
}

int64_t WorkingSets::n_active() const {
    int64_t count = 0;
    for_each_block([&](const Block& block) { count += block.n_carriers(); });
    return count;
}

std::vector<int64_t> WorkingSets::carriers() const {
    std::vector<int64_t> examples;
    for (size_t example = 0; example < blocks_.size(); ++example)
        if (std::any_of(blocks_[example].begin(), blocks_[example].end(), [](const Block& block) { return block.n_carriers() > 0; }))
            examples.push_back(static_cast<int64_t>(example));
    return examples;
}

int64_t WorkingSets::n_blocks() const {
    int64_t count = 0;
    for (const std::vector<Block>& own : blocks_) count += static_cast<int64_t>(own.size());
    return count;
}

}  // namespace maxmargin
