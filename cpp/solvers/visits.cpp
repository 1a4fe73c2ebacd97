// Visits of one block after the other: value its planes at w, move their α, write w once.
#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "qp/block_steps.hpp"
#include "qp/smo.hpp"
#include "scores/fetch.hpp"
#include "solvers/components.hpp"
#include "solvers/working_sets.hpp"
#include "solvers/working_sets_memory.hpp"

namespace maxmargin {

namespace {
constexpr int64_t max_block_steps = 10000;
constexpr int64_t visits_per_poll = 64;
// A pass collects so many blocks before it visits them: what the next ones need is fetched meanwhile.
constexpr int64_t visits_at_once = 64;
// So many single weights are read in the time of a row of features.
constexpr double terms_per_row = 32.0;
// Searches that take less than the reading of so many rows are done before another thread has started.
constexpr double worth_a_thread = 1000.0;

// The block's share of P − D at fixed w: C ξ − Σ α F for the hinge; C H² − a²/4C − Σ α F for the squared hinge, where
// a = Σ α, F already has a/2C taken off, and H = max(0, max F + a/2C). Values may have one more plane than alpha, without mass.
double block_gap(const std::vector<double>& values, std::span<const double> alpha, double C, bool squared) {
    double paid = 0.0, total = 0.0, highest = -std::numeric_limits<double>::infinity();
    for (const double value : values) highest = std::max(highest, value);
    for (size_t p = 0; p < alpha.size(); ++p) {
        paid += alpha[p] * values[p];
        total += alpha[p];
    }
    if (!squared) return C * std::max(0.0, highest) - paid;
    const double most = std::max(0.0, highest + total / (2.0 * C));
    return C * most * most - total * (total / (4.0 * C)) - paid;
}

// Examples are listed once however many blocks they have.
void note(std::vector<int64_t>& examples, int64_t example) {
    if (examples.empty() || examples.back() != example) examples.push_back(example);
}
}  // namespace

void WorkingSets::check(const Rule& rule) const {
    if (rule.relaxation != 1.0 && squared_) throw std::invalid_argument("relaxation is for the hinge loss, found the squared hinge.");
}

WorkingSets::Sweep WorkingSets::sweep(std::span<const int64_t> order, const Rule& rule, MovingWeights w, const Workers& workers) {
    check(rule);
    Sweep result;
    memory_->random = {rule.seed};
    const KnownWeights known(*space_, *memory_->scratch);
    std::vector<Block*> blocks;
    for (const int64_t example : order)
        for (Block& block : blocks_[example])
            if (block.quiet < rule.patience && block.size() > 0) blocks.push_back(&block);
    const auto n = static_cast<int64_t>(blocks.size());
    if (searches_at_once(rule)) {
        for_each_chunk((n + rule.search_batch - 1) / rule.search_batch, Workers{1, workers.poll}, [&](int64_t chunk, int) {
            const int64_t first = chunk * rule.search_batch;
            std::vector<Block*> batch(blocks.begin() + first, blocks.begin() + std::min(first + rule.search_batch, n));
            visit_all(batch, rule, w, workers, result);
        });
        space_->settle(w, *memory_->scratch);
        return result;
    }
    // One thread: each visit needs the w that the visit before it left. Chunks serve the polling only.
    for_each_chunk((n + visits_per_poll - 1) / visits_per_poll, Workers{1, workers.poll}, [&](int64_t chunk, int) {
        for (int64_t v = chunk * visits_per_poll; v < std::min((chunk + 1) * visits_per_poll, n); ++v) visit_one_of(blocks, v, rule, w, result);
    });
    space_->settle(w, *memory_->scratch);
    return result;
}

// memory.found[k] = the block's share of the plane that the oracle found, if it has any.
void WorkingSets::keep_share(const Block& block, Code code, size_t k) const {
    Memory& memory = *memory_;
    if (memory.found.size() <= k) memory.found.resize(k + 1);
    Memory::Found& found = memory.found[k];
    found.is_any = is_touched(block);
    if (found.is_any) found.loss = space_->combine(block.example, code, block.span, {}, found.code);
}

// Visits the v-th block, and fetches what the visits after it will read.
void WorkingSets::visit_one_of(std::span<Block* const> blocks, int64_t v, const Rule& rule, MovingWeights w, Sweep& result, const Candidate* candidate) {
    const auto n = static_cast<int64_t>(blocks.size());
    if (v + 6 < n) fetch(blocks[v + 6], sizeof(Block));
    if (v + 4 < n) blocks[v + 4]->fetch_data();
    if (v + 3 < n) space_->fetch_starts(blocks[v + 3]->parts);
    if (v + 2 < n) space_->fetch_rows(blocks[v + 2]->parts);
    const bool has_next = v + 1 < n && !blocks[v + 1]->parts.rows.empty();
    visit(*blocks[v], candidate, rule, w, result, has_next ? blocks[v + 1]->parts.rows.front() : -1);
}

WorkingSets::Sweep WorkingSets::pass(Oracle& oracle, std::span<const int64_t> order, int64_t batch_size, const Rule& rule, MovingWeights w,
                                     const Workers& workers) {
    check(rule);
    Sweep result;
    memory_->random = {rule.seed};
    const KnownWeights known(*space_, *memory_->scratch);
    const auto n = static_cast<int64_t>(order.size());
    for_each_chunk((n + batch_size - 1) / batch_size, Workers{1, workers.poll}, [&](int64_t chunk, int) {
        const int64_t begin = chunk * batch_size;
        const auto ids = order.subspan(begin, std::min(batch_size, n - begin));
        space_->settle(w, *memory_->scratch);
        const PlaneBatch found = oracle.search(ids);
        space_->check(found);
        std::vector<Block*> waiting;
        int64_t next = 0;
        for (size_t k = 0; k < ids.size(); ++k) {
            const int64_t example = ids[k];
            const int64_t place = begin + static_cast<int64_t>(k);
            if (place + 4 < n) fetch_all(blocks_[order[place + 4]]);
            if (place + 2 < n)
                for (const Block& block : blocks_[order[place + 2]]) block.fetch_data();
            const bool is_found = next < found.size() && found.examples[next] == example;
            const int64_t plane = next;
            next += is_found;
            if (budgets_[example] <= 0.0) continue;
            if (is_found && !is_parted(example)) {
                distribute(example, {found.code(plane), found.losses[plane]}, [&](Block& block, const Candidate& share) { visit(block, &share, rule, w, result); });
                continue;
            }
            heartbeat();
            // Making room moves the blocks of an example: none of them may be waiting.
            if (std::any_of(waiting.begin(), waiting.end(), [&](const Block* block) { return block->example == example; }))
                visit_all(waiting, rule, w, workers, result);
            memory_->spans.clear();
            if (is_found) make_room(example, found.code(plane));
            // Where neither the oracle's plane differs from the truth nor any plane carries mass, the block is solved already.
            for (Block& block : blocks_[example])
                if (is_touched(block) || block.n_carriers() > 0) {
                    waiting.push_back(&block);
                    if (!rule.searches) keep_share(block, is_found ? found.code(plane) : Code{}, waiting.size() - 1);
                }
            if (static_cast<int64_t>(waiting.size()) >= (searches_at_once(rule) ? rule.search_batch : visits_at_once)) visit_all(waiting, rule, w, workers, result);
        }
        visit_all(waiting, rule, w, workers, result);
    });
    space_->settle(w, *memory_->scratch);
    return result;
}

// Visits the blocks in turn, each with its share of the oracle's plane where visits do not search, and forgets the list. Where they
// search and searches take long, these are made at once, by several threads, at the w before the first visit: the visits
// themselves value what was found at the w that they meet.
void WorkingSets::visit_all(std::vector<Block*>& blocks, const Rule& rule, MovingWeights w, const Workers& workers, Sweep& result) {
    if (!searches_at_once(rule)) {
        for (size_t v = 0; v < blocks.size(); ++v) {
            const Memory::Found* found = rule.searches ? nullptr : &memory_->found[v];
            const Candidate candidate = found ? Candidate{found->code, found->loss} : Candidate{};
            visit_one_of(blocks, static_cast<int64_t>(v), rule, w, result, found && found->is_any ? &candidate : nullptr);
        }
        blocks.clear();
        return;
    }
    double work = 0.0;
    for (const Block* block : blocks) work += (1.0 + rule.search_work) * static_cast<double>(block->parts.rows.size());
    space_->settle(w, *memory_->scratch);
    search_all(blocks, w, {work < worth_a_thread ? 1 : workers.n_threads, workers.poll});
    Rule without_search = rule;
    without_search.searches = false;
    for (size_t k = 0; k < blocks.size(); ++k) {
        const Memory::Found& found = memory_->found[k];
        const Candidate candidate{found.code, found.loss};
        result.work += rule.search_work * static_cast<double>(blocks[k]->parts.rows.size());
        visit(*blocks[k], found.is_any ? &candidate : nullptr, without_search, w, result);
    }
    blocks.clear();
}

// memory.found[k] = the best output of the k-th block within its stretch.
void WorkingSets::search_all(std::span<Block* const> blocks, WeightsView w, const Workers& workers) const {
    Memory& memory = *memory_;
    memory.found.resize(blocks.size());
    while (static_cast<int>(memory.scratches.size()) < std::max(workers.n_threads, 1)) memory.scratches.push_back(space_->scratch());
    for (const std::unique_ptr<PlaneScratch>& scratch : memory.scratches) space_->forget(*scratch);
    for_each_chunk(static_cast<int64_t>(blocks.size()), workers, [&](int64_t k, int thread) {
        const Block& block = *blocks[k];
        Memory::Found& found = memory.found[k];
        found.is_any = false;
        if (!is_parted(block.example)) return;
        PlaneScratch& scratch = *memory.scratches[thread];
        std::vector<double> products(block.parts.size());
        double product = 0.0;
        space_->dots(block.parts, w, scratch, products.data(), -1, true);
        found.is_any = space_->search_within(block.example, block.span, block.parts, w, scratch, found.code, found.loss, product);
    });
}

// Whether the oracle's plane differs from the truth in the block's stretch or next to it.
bool WorkingSets::is_touched(const Block& block) const {
    return std::any_of(memory_->spans.begin(), memory_->spans.end(), [&](const Span& span) { return block.span.touches(span); });
}

void WorkingSets::visit(Block& block, const Candidate* candidate, const Rule& rule, MovingWeights w, Sweep& result, int64_t next_row) {
    Memory& memory = *memory_;
    ++result.visits;
    const bool searches = rule.searches && is_parted(block.example);
    const size_t n_rows = block.parts.rows.size();
    result.work += 1.0 + (searches ? 1.0 + rule.search_work : 1.0) * static_cast<double>(n_rows) + static_cast<double>(block.parts.weights.size()) / terms_per_row;
    ++block.quiet;
    if (candidate && block.has(candidate->code, candidate->loss)) candidate = nullptr;
    const bool is_written = candidate != nullptr;
    if (is_written) space_->write(block.example, candidate->code, candidate->loss, block.parts, *memory.scratch);
    value_block(block, w, candidate, next_row, searches);
    Candidate local;
    if (searches && find_within(block, w, local)) candidate = &local;
    const double gap = block_gap(memory.values, block.alpha, block.budget, squared_);
    result.gap += gap;
    if (candidate) {
        if (joins(block, rule)) {
            if (!is_written) space_->write(block.example, candidate->code, candidate->loss, block.parts, *memory.scratch);
            block.keep(candidate->code, candidate->loss, *space_, *memory.scratch);
            ++n_planes_;
            ++result.added;
        } else {
            if (is_written) block.parts.pop(n_rows);
            memory.values.pop_back();
        }
    }
    const double violated = violation(block, rule, gap);
    result.violation = std::max(result.violation, violated);
    if (violated <= rule.solve_above || block.size() == 0) {
        result.passed_over += gap;
        // One that has just joined stays until the block is solved with it.
        if (!candidate && block.size() > rule.max_planes) drop_planes(block, rule, result);
        return;
    }
    note(result.moved, block.example);
    ++result.moves;
    block.quiet = 0;
    memory.before.assign(block.alpha.begin(), block.alpha.end());
    memory.change = memory.values;
    try {
        result.steps += solve(block, rule);
    } catch (...) {
        block.alpha.assign(memory.before.begin(), memory.before.end());  // what is not moved yet keeps its α
        throw;
    }
    if (rule.relaxation > 1.0) unbend(block, rule);
    // The dual is quadratic: its gain is the change of α times the mean of the derivatives before and after.
    for (size_t p = 0; p < block.size(); ++p) result.gain += 0.5 * (block.alpha[p] - memory.before[p]) * (memory.change[p] + memory.values[p]);
    move(block, w);
    drop_planes(block, rule, result);
}

// A search takes little more than the visit, by components: the rows of the block are scored for its planes anyway.
bool WorkingSets::find_within(const Block& block, WeightsView w, Candidate& found) const {
    Memory& memory = *memory_;
    double product = 0.0;
    if (!space_->search_within(block.example, block.span, block.parts, w, *memory.scratch, memory.code, found.loss, product)) return false;
    found.code = memory.code;
    if (block.has(found.code, found.loss)) return false;
    memory.values.push_back(found.loss - product);
    return true;
}

bool WorkingSets::joins(const Block& block, const Rule& rule) const {
    const std::span<const double> values = memory_->values, alpha = block.alpha;
    const double value = values.back();
    if (rule.step == Step::coordinates) return value >= rule.insert_above;
    double paid = rule.step == Step::pairs && block.left() <= 0.0 ? std::numeric_limits<double>::infinity() : 0.0;
    for (size_t p = 0; p < alpha.size(); ++p) {
        if (rule.step == Step::exact) paid = std::max(paid, values[p]);
        else if (alpha[p] > 0.0) paid = std::min(paid, values[p]);
    }
    return value - paid > rule.insert_above;
}

double WorkingSets::violation(const Block& block, const Rule& rule, double gap) const {
    if (rule.step == Step::pairs) return pair_violation(block.size(), memory_->values.data(), block.alpha.data(), block.budget);
    if (rule.step == Step::coordinates) return coordinate_violation(block.size(), memory_->values.data(), block.alpha.data());
    return gap / block.budget;
}

// Moves the block's α; memory.values are F at α before and after.
int64_t WorkingSets::solve(Block& block, const Rule& rule) {
    Memory& memory = *memory_;
    const size_t n = block.size();
    const double C = block.budget, ridge = squared_ ? 1.0 / (2.0 * C) : 0.0;
    const double* gram = block.gram.data();
    if (squared_ || rule.relaxation > 1.0) {
        memory.gram.assign(block.gram.begin(), block.gram.end());
        for (double& entry : memory.gram) entry = (entry + ridge) / rule.relaxation;
        gram = memory.gram.data();
    }
    double* values = memory.values.data();
    double* alpha = block.alpha.data();
    if (rule.step == Step::pairs) return ascend_pairs(gram, n, values, alpha, C, rule.solve_to, max_block_steps);
    if (rule.step == Step::coordinates) {
        memory.order.resize(n);
        std::iota(memory.order.rbegin(), memory.order.rend(), size_t{0});
        memory.random.shuffle(std::span(memory.order).subspan(1));
        ascend_coordinates(gram, n, memory.order, values, alpha);
        return static_cast<int64_t>(n);
    }
    const double budget = squared_ ? std::numeric_limits<double>::infinity() : C;
    return smo(gram, n, n, values, alpha, budget, rule.solve_to * C, max_block_steps, ridge).steps;
}

// memory.values, which a solve with over-relaxation ω left as if the dual were flatter, become F at α. The best step d there has
// F·d ≥ d·G·d / ω, which is more than the d·G·d / 2 that the dual loses. One that was broken off may have gone too far: it is cut
// back to the best point on its way.
void WorkingSets::unbend(Block& block, const Rule& rule) {
    Memory& memory = *memory_;
    double slope = 0.0, curvature = 0.0;
    for (size_t p = 0; p < block.size(); ++p) {
        const double fall = rule.relaxation * (memory.change[p] - memory.values[p]), step = block.alpha[p] - memory.before[p];
        memory.values[p] = memory.change[p] - fall;
        slope += step * memory.change[p];
        curvature += step * fall;
    }
    if (2.0 * slope >= curvature) return;
    const double share = curvature > 0.0 ? std::max(0.0, slope / curvature) : 0.0;
    for (size_t p = 0; p < block.size(); ++p) {
        block.alpha[p] = memory.before[p] + share * (block.alpha[p] - memory.before[p]);
        memory.values[p] = memory.change[p] + share * (memory.values[p] - memory.change[p]);
    }
}

void WorkingSets::drop_planes(Block& block, const Rule& rule, Sweep& result) {
    const size_t n = block.size();
    size_t n_empty = static_cast<size_t>(std::count(block.alpha.begin(), block.alpha.end(), 0.0));
    // An example that is too long to be parted does not search in its visits: its planes are not found again.
    const bool drops_empty = rule.drops_empty && (!by_components_ || is_parted(block.example));
    const size_t n_dropped = drops_empty ? n_empty : n > rule.max_planes ? std::min(n_empty, n - rule.max_planes) : 0;
    if (n_dropped == 0) return;
    std::vector<bool> drop(n, false);
    for (size_t k = 0; k < n_dropped; ++k) {
        size_t least = n;
        for (size_t p = 0; p < n; ++p)
            if (block.alpha[p] == 0.0 && !drop[p] && (least == n || memory_->values[p] < memory_->values[least])) least = p;
        drop[least] = true;
    }
    block.erase(drop);
    n_planes_ -= static_cast<int64_t>(n_dropped);
    result.dropped += static_cast<int64_t>(n_dropped);
}

// Applies the change of α to w.
void WorkingSets::move(const Block& block, MovingWeights w) {
    Memory& memory = *memory_;
    if (!nonnegative_.empty()) w.nonnegative = &nonnegative_;
    for (size_t p = 0; p < block.size(); ++p) memory.change[p] = block.alpha[p] - memory.before[p];
    space_->add(block.parts, memory.change.data(), w, *memory.scratch);
}

}  // namespace maxmargin
