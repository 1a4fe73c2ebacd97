#include "solvers/working_sets.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "qp/smo.hpp"
#include "solvers/working_sets_memory.hpp"

namespace maxmargin {

namespace {
constexpr int64_t max_block_steps = 10000;
constexpr int64_t visits_per_poll = 64;

// The block's share of P − D at fixed w: C ξ − Σ α F for the hinge; C H² − a²/4C − Σ α F for the squared hinge, where
// a = Σ α, F already has a/2C taken off, and H = max(0, max F + a/2C).
double block_gap(const std::vector<double>& values, const std::vector<double>& alpha, double C, bool squared) {
    double paid = 0.0, total = 0.0, highest = -std::numeric_limits<double>::infinity();
    for (size_t p = 0; p < values.size(); ++p) {
        highest = std::max(highest, values[p]);
        paid += alpha[p] * values[p];
        total += alpha[p];
    }
    if (!squared) return C * std::max(0.0, highest) - paid;
    const double most = std::max(0.0, highest + total / (2.0 * C));
    return C * most * most - total * total / (4.0 * C) - paid;
}
}  // namespace

WorkingSets::WorkingSets(std::shared_ptr<const PlaneSpace> space, std::vector<double> budgets, bool squared, std::vector<int64_t> nonnegative)
    : space_(std::move(space)),
      memory_(std::make_unique<Memory>()),
      budgets_(std::move(budgets)),
      squared_(squared),
      nonnegative_(std::move(nonnegative)),
      unclipped_(nonnegative_.size(), 0.0),
      blocks_(space_->n_examples()) {
    memory_->scratch = space_->scratch();
}

WorkingSets::~WorkingSets() = default;

// memory.values[p] = the derivative of the dual with respect to α_p: Δ − w·ψ, less Σα / 2C for the squared hinge.
void WorkingSets::value_block(int64_t example, const double* w) const {
    Memory& memory = *memory_;
    const Block& block = blocks_[example];
    const size_t n = block.entries.size();
    memory.codes.resize(n);
    memory.losses.resize(n);
    memory.values.resize(n);
    for (size_t p = 0; p < n; ++p) {
        memory.codes[p] = block.code(p);
        memory.losses[p] = block.entries[p].loss;
    }
    if (n == 0) return;
    space_->dots(static_cast<int32_t>(example), memory.codes, memory.losses, {w}, *memory.scratch, memory.values.data());
    const double total = std::accumulate(block.alpha.begin(), block.alpha.end(), 0.0);
    const double shift = squared_ ? total / (2.0 * budgets_[example]) : 0.0;
    for (size_t p = 0; p < n; ++p) memory.values[p] = memory.losses[p] - memory.values[p] - shift;
}

void WorkingSets::add_plane(int64_t example, double loss, Code code) {
    Memory& memory = *memory_;
    Block& block = blocks_[example];
    const size_t n = block.entries.size();
    const auto begin = static_cast<uint32_t>(block.codes.size());
    block.codes.insert(block.codes.end(), code.begin(), code.end());
    block.entries.push_back({loss, 0, begin, static_cast<uint32_t>(code.size())});
    block.alpha.push_back(0.0);
    memory.codes.resize(n + 1);
    memory.losses.resize(n + 1);
    for (size_t p = 0; p <= n; ++p) {
        memory.codes[p] = block.code(p);
        memory.losses[p] = block.entries[p].loss;
    }
    std::vector<double> row(n + 1);
    space_->inner(static_cast<int32_t>(example), block.code(n), loss, memory.codes, memory.losses, *memory.scratch, row.data());
    std::vector<double> gram((n + 1) * (n + 1));
    for (size_t p = 0; p < n; ++p) {
        std::copy_n(block.gram.begin() + p * n, n, gram.begin() + p * (n + 1));
        gram[p * (n + 1) + n] = row[p];
    }
    std::copy(row.begin(), row.end(), gram.begin() + n * (n + 1));
    block.gram.swap(gram);
    ++n_planes_;
}

int64_t WorkingSets::insert(const PlaneBatch& planes, const double* w, double epsilon) {
    Memory& memory = *memory_;
    int64_t added = 0;
    for (int64_t k = 0; k < planes.size(); ++k) {
        heartbeat();
        const int32_t example = planes.examples[k];
        if (budgets_[example] <= 0.0) continue;
        const Code code = planes.code(k);
        const double loss = planes.losses[k];
        const Block& block = blocks_[example];
        bool known = false;
        for (size_t e = 0; e < block.entries.size() && !known; ++e) {
            const Code other = block.code(e);
            known = block.entries[e].loss == loss && std::equal(code.begin(), code.end(), other.begin(), other.end());
        }
        if (known) continue;
        double product = 0.0;
        space_->dots(example, std::span(&code, 1), std::span(&loss, 1), {w}, *memory.scratch, &product);
        value_block(example, w);
        const double total = squared_ ? std::accumulate(block.alpha.begin(), block.alpha.end(), 0.0) / (2.0 * budgets_[example]) : 0.0;
        double paid = 0.0;
        for (const double value : memory.values) paid = std::max(paid, value);
        if (loss - product - total <= paid + epsilon) continue;
        add_plane(example, loss, code);
        ++added;
    }
    return added;
}

double WorkingSets::mass_left(size_t example) const {
    if (squared_) return std::numeric_limits<double>::infinity();
    const std::vector<double>& alpha = blocks_[example].alpha;
    const double C = budgets_[example], left = C - std::accumulate(alpha.begin(), alpha.end(), 0.0);
    // Rounding of the sum must not make a spent budget look like one with mass left.
    return left <= 1e-15 * static_cast<double>(alpha.size()) * C ? 0.0 : left;
}

// Applies the change of α to w; the non-negative weights are the unclipped sums with their negative part cut off.
void WorkingSets::move(int64_t example, double* w) {
    Memory& memory = *memory_;
    const Block& block = blocks_[example];
    for (size_t j = 0; j < nonnegative_.size(); ++j) w[nonnegative_[j]] = unclipped_[j];
    for (size_t p = 0; p < block.alpha.size(); ++p)
        if (const double change = block.alpha[p] - memory.before[p]; change != 0.0)
            space_->add(static_cast<int32_t>(example), block.code(p), block.entries[p].loss, change, w, *memory.scratch);
    for (size_t j = 0; j < nonnegative_.size(); ++j) {
        unclipped_[j] = w[nonnegative_[j]];
        w[nonnegative_[j]] = std::max(0.0, unclipped_[j]);
    }
}

WorkingSets::Sweep WorkingSets::sweep(std::span<const int64_t> order, double tolerance, double* w, const Workers& workers) {
    Sweep result;
    Memory& memory = *memory_;
    // One thread: each visit needs the w that the visit before it left. Chunks serve the polling only.
    const Workers alone{1, workers.poll};
    const auto n = static_cast<int64_t>(order.size());
    for_each_chunk((n + visits_per_poll - 1) / visits_per_poll, alone, [&](int64_t chunk, int) {
        for (int64_t v = chunk * visits_per_poll; v < std::min((chunk + 1) * visits_per_poll, n); ++v) {
            const int64_t example = order[v];
            Block& block = blocks_[example];
            const size_t m = block.entries.size();
            if (m == 0) continue;
            const double C = budgets_[example];
            value_block(example, w);
            memory.before = block.alpha;
            const double before = block_gap(memory.values, block.alpha, C, squared_);
            result.gap += before;
            result.violation = std::max(result.violation, before / C);
            if (before <= tolerance * C) continue;
            result.moved.push_back(example);
            const double* gram = block.gram.data();
            const double ridge = squared_ ? 1.0 / (2.0 * C) : 0.0;
            if (squared_) {
                memory.gram = block.gram;
                for (double& entry : memory.gram) entry += ridge;
                gram = memory.gram.data();
            }
            const double budget = squared_ ? std::numeric_limits<double>::infinity() : C;
            try {
                result.steps += smo(gram, m, m, memory.values.data(), block.alpha.data(), budget, 0.1 * tolerance * C, max_block_steps, ridge).steps;
            } catch (...) {
                block.alpha = memory.before;  // an interrupted block must not leave α and w apart
                throw;
            }
            move(example, w);
        }
    });
    return result;
}

double WorkingSets::linear_part() const {
    double sum = 0.0;
    for (size_t i = 0; i < blocks_.size(); ++i) {
        double total = 0.0;
        for (size_t p = 0; p < blocks_[i].alpha.size(); ++p) {
            sum += blocks_[i].alpha[p] * blocks_[i].entries[p].loss;
            total += blocks_[i].alpha[p];
        }
        if (squared_ && total > 0.0) sum -= total * total / (4.0 * budgets_[i]);
    }
    return sum;
}

void WorkingSets::weights(double* w) const {
    sum(w);
    for (const int64_t j : nonnegative_) w[j] = std::max(0.0, w[j]);
}

void WorkingSets::sum(double* w) const {
    std::fill(w, w + space_->n_weights(), 0.0);
    for (size_t i = 0; i < blocks_.size(); ++i) {
        heartbeat();
        for (size_t p = 0; p < blocks_[i].alpha.size(); ++p)
            if (blocks_[i].alpha[p] != 0.0)
                space_->add(static_cast<int32_t>(i), blocks_[i].code(p), blocks_[i].entries[p].loss, blocks_[i].alpha[p], w, *memory_->scratch);
    }
}

std::vector<double> WorkingSets::slacks(std::span<const int64_t> ids, const double* w) const {
    Memory& memory = *memory_;
    std::vector<double> out;
    for (const int64_t example : ids) {
        heartbeat();
        value_block(example, w);
        const Block& block = blocks_[example];
        const double total = std::accumulate(block.alpha.begin(), block.alpha.end(), 0.0);
        const double shift = squared_ ? total / (2.0 * budgets_[example]) : 0.0;
        double most = 0.0;
        for (const double value : memory.values) most = std::max(most, value + shift);
        out.push_back(most);
    }
    return out;
}

std::vector<int64_t> WorkingSets::exceeding(std::span<const int64_t> ids, std::span<const double> values, const double* w) const {
    Memory& memory = *memory_;
    const double norm = std::sqrt(std::inner_product(w, w + space_->n_weights(), w, 0.0));
    std::vector<int64_t> out;
    for (size_t k = 0; k < ids.size(); ++k) {
        heartbeat();
        const auto example = static_cast<int32_t>(ids[k]);
        const Block& block = blocks_[example];
        const auto exceeds = [&](size_t p) {
            const double loss = block.entries[p].loss;
            const Code code = block.code(p);
            double product = 0.0;
            space_->dots(example, std::span(&code, 1), std::span(&loss, 1), {w}, *memory.scratch, &product);
            const double excess = loss - product - values[k];
            return excess > 0.0 && excess > 1e-9 * values[k] + space_->rounding(example, code, loss, product, norm, *memory.scratch);
        };
        bool any = false;
        for (size_t p = 0; p < block.entries.size() && !any; ++p) any = exceeds(p);
        if (any) out.push_back(example);
    }
    return out;
}

void WorkingSets::erase(Block& block, const std::vector<bool>& drop) {
    Block kept;
    std::vector<size_t> stays;
    for (size_t e = 0; e < block.entries.size(); ++e)
        if (!drop[e]) stays.push_back(e);
    const size_t n = block.entries.size();
    for (const size_t e : stays) {
        const Code code = block.code(e);
        kept.entries.push_back({block.entries[e].loss, block.entries[e].idle, static_cast<uint32_t>(kept.codes.size()), block.entries[e].length});
        kept.codes.insert(kept.codes.end(), code.begin(), code.end());
        kept.alpha.push_back(block.alpha[e]);
        for (const size_t f : stays) kept.gram.push_back(block.gram[e * n + f]);
    }
    block = std::move(kept);
}

int64_t WorkingSets::prune(int64_t prune_after) {
    int64_t dropped = 0;
    for (Block& block : blocks_) {
        std::vector<bool> drop(block.entries.size(), false);
        bool any = false;
        for (size_t e = 0; e < block.entries.size(); ++e) {
            block.entries[e].idle = block.alpha[e] > 0.0 ? 0 : block.entries[e].idle + 1;
            if (block.entries[e].idle >= prune_after) {
                drop[e] = any = true;
                ++dropped;
            }
        }
        if (any) erase(block, drop);
    }
    n_planes_ -= dropped;
    return dropped;
}

PlaneBatch WorkingSets::planes() const {
    PlaneBatch all;
    for (size_t i = 0; i < blocks_.size(); ++i)
        for (size_t e = 0; e < blocks_[i].entries.size(); ++e)
            all.add(static_cast<int32_t>(i), blocks_[i].entries[e].loss, blocks_[i].code(e));
    return all;
}

int64_t WorkingSets::n_active() const {
    int64_t count = 0;
    for (const Block& block : blocks_) count += std::count_if(block.alpha.begin(), block.alpha.end(), [](double a) { return a > 0.0; });
    return count;
}

}  // namespace maxmargin
