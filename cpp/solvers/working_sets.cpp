#include "solvers/working_sets.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "solvers/working_sets_memory.hpp"

namespace maxmargin {

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

bool WorkingSets::Block::has(Code wanted, double loss) const {
    for (size_t e = 0; e < entries.size(); ++e) {
        const Code other = code(e);
        if (entries[e].loss == loss && std::equal(wanted.begin(), wanted.end(), other.begin(), other.end())) return true;
    }
    return false;
}

double WorkingSets::total(size_t example) const {
    const std::vector<double>& alpha = blocks_[example].alpha;
    return std::accumulate(alpha.begin(), alpha.end(), 0.0);
}

double WorkingSets::mass_left(size_t example) const {
    if (squared_) return std::numeric_limits<double>::infinity();
    const double C = budgets_[example], left = C - total(example);
    // Rounding of the sum must not make a spent budget look like one with mass left.
    return left <= 1e-15 * static_cast<double>(blocks_[example].size()) * C ? 0.0 : left;
}

void WorkingSets::value_block(int64_t example, WeightsView w, const Candidate* candidate) const {
    std::vector<double>& values = memory_->values;
    const Block& block = blocks_[example];
    values.resize(block.parts.size());
    if (values.empty()) return;
    space_->dots(block.parts, w, *memory_->scratch, values.data());
    const double taken = shift(example);
    for (size_t p = 0; p < block.size(); ++p) values[p] = block.entries[p].loss - values[p] - taken;
    if (candidate) values.back() = candidate->loss - values.back() - taken;
}

void WorkingSets::keep_plane(Block& block, const Candidate& plane) {
    const size_t n = block.size();
    const auto begin = static_cast<uint32_t>(block.codes.size());
    block.codes.insert(block.codes.end(), plane.code.begin(), plane.code.end());
    block.entries.push_back({plane.loss, 0, begin, static_cast<uint32_t>(plane.code.size())});
    block.alpha.push_back(0.0);
    std::vector<double>& row = memory_->change;
    row.resize(n + 1);
    space_->inner(block.parts, n, *memory_->scratch, row.data());
    block.gram.resize((n + 1) * (n + 1));
    for (size_t p = n; p-- > 0;) {
        std::copy_backward(block.gram.begin() + p * n, block.gram.begin() + (p + 1) * n, block.gram.begin() + p * (n + 1) + n);
        block.gram[p * (n + 1) + n] = row[p];
    }
    std::copy(row.begin(), row.end(), block.gram.begin() + n * (n + 1));
    ++n_planes_;
}

int64_t WorkingSets::insert(const PlaneBatch& planes, const double* w, double epsilon) {
    int64_t added = 0;
    for (int64_t k = 0; k < planes.size(); ++k) {
        heartbeat();
        const int32_t example = planes.examples[k];
        const Candidate plane{planes.code(k), planes.losses[k]};
        Block& block = blocks_[example];
        if (budgets_[example] <= 0.0 || block.has(plane.code, plane.loss)) continue;
        const size_t n_rows = block.parts.rows.size();
        space_->write(example, plane.code, plane.loss, block.parts, *memory_->scratch);
        value_block(example, {w}, &plane);
        const std::vector<double>& values = memory_->values;
        const double paid = std::accumulate(values.begin(), values.end() - 1, 0.0, [](double a, double b) { return std::max(a, b); });
        if (values.back() <= paid + epsilon) {
            block.parts.pop(n_rows);
            continue;
        }
        keep_plane(block, plane);
        ++added;
    }
    return added;
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
    for (const Block& block : blocks_) {
        heartbeat();
        if (block.size() > 0) space_->add(block.parts, block.alpha.data(), {w}, *memory_->scratch);
    }
}

std::vector<double> WorkingSets::slacks(std::span<const int64_t> ids, const double* w) const {
    std::vector<double> out;
    for (const int64_t example : ids) {
        heartbeat();
        value_block(example, {w});
        const double taken = shift(example);
        double most = 0.0;
        for (const double value : memory_->values) most = std::max(most, value + taken);
        out.push_back(most);
    }
    return out;
}

std::vector<int64_t> WorkingSets::exceeding(std::span<const int64_t> ids, std::span<const double> values, const double* w) const {
    const double norm = std::sqrt(std::inner_product(w, w + space_->n_weights(), w, 0.0));
    std::vector<int64_t> out;
    for (size_t k = 0; k < ids.size(); ++k) {
        heartbeat();
        const auto example = static_cast<int32_t>(ids[k]);
        const Block& block = blocks_[example];
        std::vector<double> products(block.size());
        space_->dots(block.parts, {w}, *memory_->scratch, products.data());
        const auto exceeds = [&](size_t p) {
            const double loss = block.entries[p].loss, excess = loss - products[p] - values[k];
            return excess > 0.0 && excess > 1e-9 * values[k] + space_->rounding(example, block.code(p), loss, products[p], norm, *memory_->scratch);
        };
        bool any = false;
        for (size_t p = 0; p < block.size() && !any; ++p) any = exceeds(p);
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
    kept.parts = std::move(block.parts);
    kept.parts.erase(drop);
    n_planes_ -= static_cast<int64_t>(n - stays.size());
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
