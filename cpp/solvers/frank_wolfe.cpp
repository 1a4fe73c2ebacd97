#include "solvers/frank_wolfe.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "qp/unspent.hpp"

namespace maxmargin {

FrankWolfe::FrankWolfe(std::shared_ptr<const PlaneSpace> space, std::vector<double> budgets, std::vector<int64_t> nonnegative, Settings settings)
    : space_(std::move(space)),
      scratch_(space_->scratch()),
      budgets_(std::move(budgets)),
      nonnegative_(std::move(nonnegative)),
      settings_(settings),
      blocks_(space_->n_examples()),
      gaps_(static_cast<size_t>(space_->n_examples())) {}

void FrankWolfe::start_from(const FrankWolfe& other, double factor) {
    for (size_t i = 0; i < other.blocks_.size(); ++i) {
        Block& block = blocks_[i];
        block = other.blocks_[i];
        block.steps.clear();
        block.point.add(factor - 1.0, block.point);
        block.loss *= factor;
        block.mass *= factor;
        for (Kept& plane : block.kept) plane.alpha *= factor;
        fold_beyond(block, settings_.max_planes);
    }
    n_steps_ = 0;
    step_losses_ = 0.0;
}

// ------------------------------------------------------------------------------------------------ passes

FrankWolfe::Pass FrankWolfe::pass(Oracle& oracle, std::span<const int64_t> order, int64_t batch_size, double* w, const Workers& workers) {
    Pass result;
    const auto n = static_cast<int64_t>(order.size());
    // One thread: each visit needs the w that the visit before it left. Chunks serve the polling only.
    for_each_chunk((n + batch_size - 1) / batch_size, Workers{1, workers.poll}, [&](int64_t chunk, int) {
        visit_batch(oracle, order.subspan(chunk * batch_size, std::min(batch_size, n - chunk * batch_size)), w, result);
    });
    return result;
}

FrankWolfe::Pass FrankWolfe::pass_by_gaps(Oracle& oracle, std::span<const double> uniforms, int64_t batch_size, double* w, const Workers& workers) {
    Pass result;
    const auto n = static_cast<int64_t>(uniforms.size());
    for_each_chunk((n + batch_size - 1) / batch_size, Workers{1, workers.poll}, [&](int64_t chunk, int) {
        visit_batch(oracle, draw(uniforms.subspan(chunk * batch_size, std::min(batch_size, n - chunk * batch_size))), w, result);
    });
    return result;
}

std::vector<int64_t> FrankWolfe::draw(std::span<const double> uniforms) const {
    std::vector<int64_t> ids;
    if (gaps_.total() > 0.0)
        for (const double u : uniforms) ids.push_back(static_cast<int64_t>(gaps_.find(u)));
    return ids;
}

void FrankWolfe::visit_batch(Oracle& oracle, std::span<const int64_t> ids, double* w, Pass& result) {
    if (ids.empty()) return;
    const PlaneBatch planes = oracle.search(ids);
    space_->check(planes);
    int64_t next = 0;
    for (const int64_t example : ids) {
        const bool is_found = next < planes.size() && planes.examples[next] == example;
        Found found{};
        if (is_found) found = {planes.code(next), planes.losses[next]};
        next += is_found;
        ++n_steps_;
        const auto step = settings_.max_planes == 0 ? &FrankWolfe::step_towards : &FrankWolfe::step_pairwise;
        const double gap = (this->*step)(example, is_found ? &found : nullptr, w, result);
        result.gap += gap;
        // A plane of an earlier w may be worth less than the block's point.
        gaps_.set(static_cast<size_t>(example), std::max(0.0, gap));
    }
}

// ------------------------------------------------------------------------------------------------- steps

namespace {
// The best step of at most `limit` for a concave quadratic of this slope and curvature; equal planes have none.
double best_step(double slope, double curvature, double limit) {
    if (slope <= 0.0) return 0.0;
    return slope >= curvature * limit ? limit : slope / curvature;
}
}  // namespace

// u = C_i ψ − w_i. The plane of the truth is 0.
double FrankWolfe::step_towards(int64_t example, const Found* plane, double* w, Pass& result) {
    Block& block = blocks_[example];
    const double C = budgets_[example];
    direction_.clear();
    direction_.add(-1.0, block.point);
    if (plane) {
        PlaneParts& written = scratch_->planes;
        written.clear();
        space_->write(static_cast<int32_t>(example), plane->code, plane->loss, written, *scratch_);
        direction_.add(C, written, 0);
    }
    double slope = 0.0, norm2 = 0.0;
    measure(w, slope, norm2);
    const double loss = (plane ? C * plane->loss : 0.0) - block.loss;
    const double gap = loss - slope;
    const double step = best_step(gap, norm2, 1.0);
    if (step > 0.0) {
        ++result.moves;
        move(block, step, loss, w);
        block.point.add(step, direction_);
        block.loss += step * loss;
        block.mass += step * ((plane ? C : 0.0) - block.mass);
    }
    return gap;
}

void FrankWolfe::measure(const double* w, double& slope, double& norm2) {
    line_.clear();
    direction_.write(line_);
    space_->dots(line_, {w}, *scratch_, &slope);
    space_->inner(line_, 0, *scratch_, &norm2);
}

// w and the average follow.
void FrankWolfe::move(Block& block, double step, double loss, double* w) {
    space_->add(line_, &step, {w, nullptr, nonnegative_.empty() ? nullptr : &nonnegative_}, *scratch_);
    if (!settings_.averages) return;
    const double weight = 0.5 * static_cast<double>(n_steps_) * static_cast<double>(n_steps_ - 1);
    block.steps.add(weight * step, direction_);
    step_losses_ += weight * step * loss;
}

// ---------------------------------------------------------------------------------------- pairwise steps

// Mass goes from the worst that has some to the best. Beside the kept planes there are the truth and the sum of the other planes.
struct FrankWolfe::Pair {
    static constexpr int truth = -1, rest = -2;
    int best = truth, worst = truth;
    double best_value = 0.0, worst_value = 0.0;
    double limit = 0.0;  // mass of the worst
};

double FrankWolfe::step_pairwise(int64_t example, const Found* plane, double* w, Pass& result) {
    Block& block = blocks_[example];
    const double C = budgets_[example];
    const auto is_plane = [&](const Kept& kept) { return kept.loss == plane->loss && std::equal(plane->code.begin(), plane->code.end(), kept.code.begin(), kept.code.end()); };
    if (plane && std::none_of(block.kept.begin(), block.kept.end(), is_plane)) {
        space_->write(static_cast<int32_t>(example), plane->code, plane->loss, block.parts, *scratch_);
        block.kept.push_back({{plane->code.begin(), plane->code.end()}, plane->loss, 0.0});
    }
    const size_t n = block.kept.size(), n_rows = block.parts.rows.size();
    std::vector<double> values(n + 1);
    block.point.write(block.parts);
    space_->dots(block.parts, {w}, *scratch_, values.data());
    block.parts.pop(n_rows);
    double paid = block.loss - values[n];
    const double rest = block.mass > 0.0 ? paid / block.mass : 0.0;
    for (size_t p = 0; p < n; ++p) {
        values[p] = block.kept[p].loss - values[p];
        paid += block.kept[p].alpha * values[p];
    }
    const Pair pair = best_pair(block, C, values.data(), rest);

    direction_.clear();
    double loss = 0.0;
    if (pair.best >= 0) {
        direction_.add(1.0, block.parts, static_cast<size_t>(pair.best));
        loss += block.kept[pair.best].loss;
    }
    if (pair.worst >= 0) {
        direction_.add(-1.0, block.parts, static_cast<size_t>(pair.worst));
        loss -= block.kept[pair.worst].loss;
    } else if (pair.worst == Pair::rest) {
        direction_.add(-1.0 / block.mass, block.point);
        loss -= block.loss / block.mass;
    }
    double slope = 0.0, norm2 = 0.0;
    measure(w, slope, norm2);
    const double step = best_step(pair.best_value - pair.worst_value, norm2, pair.limit);
    if (step > 0.0) {
        ++result.moves;
        move(block, step, loss, w);
        take(block, pair, step);
    }
    std::vector<bool> drop(n);
    for (size_t p = 0; p < n; ++p) drop[p] = block.kept[p].alpha <= 0.0;
    forget(block, drop);
    fold_beyond(block, settings_.max_planes);
    return C * pair.best_value - paid;
}

FrankWolfe::Pair FrankWolfe::best_pair(const Block& block, double budget, const double* values, double rest) const {
    Pair pair;
    double left = budget - block.mass;
    for (const Kept& kept : block.kept) left -= kept.alpha;
    pair.limit = unspent(left, block.kept.size() + 1, budget);
    const auto offer = [&](int which, double value, double mass) {
        if (mass <= 0.0 || (pair.limit > 0.0 && value >= pair.worst_value)) return;
        pair.worst = which;
        pair.worst_value = value;
        pair.limit = mass;
    };
    offer(Pair::rest, rest, block.mass);
    for (size_t p = 0; p < block.kept.size(); ++p) {
        offer(static_cast<int>(p), values[p], block.kept[p].alpha);
        if (values[p] <= pair.best_value) continue;
        pair.best = static_cast<int>(p);
        pair.best_value = values[p];
    }
    return pair;
}

void FrankWolfe::take(Block& block, const Pair& pair, double step) {
    if (pair.best >= 0) block.kept[pair.best].alpha += step;
    const bool is_all = step >= pair.limit;
    if (pair.worst >= 0) {
        double& alpha = block.kept[pair.worst].alpha;
        alpha = is_all ? 0.0 : alpha - step;
    } else if (pair.worst == Pair::rest) {
        const double share = step / block.mass;
        block.point.add(-share, block.point);
        block.loss -= share * block.loss;
        block.mass -= step;
        if (is_all) {
            block.point.clear();
            block.loss = block.mass = 0.0;
        }
    }
}

// The planes of least mass join the sum of the others: the point stays the same.
void FrankWolfe::fold_beyond(Block& block, size_t max_planes) {
    while (block.kept.size() > max_planes) {
        const auto least = std::min_element(block.kept.begin(), block.kept.end(), [](const Kept& a, const Kept& b) { return a.alpha < b.alpha; });
        const auto p = static_cast<size_t>(least - block.kept.begin());
        block.point.add(least->alpha, block.parts, p);
        block.loss += least->alpha * least->loss;
        block.mass += least->alpha;
        std::vector<bool> drop(block.kept.size(), false);
        drop[p] = true;
        forget(block, drop);
    }
}

void FrankWolfe::forget(Block& block, const std::vector<bool>& drop) {
    if (std::none_of(drop.begin(), drop.end(), [](bool is_dropped) { return is_dropped; })) return;
    block.parts.erase(drop);
    size_t n = 0;
    for (size_t p = 0; p < drop.size(); ++p) {
        if (drop[p]) continue;
        if (n != p) block.kept[n] = std::move(block.kept[p]);
        ++n;
    }
    block.kept.resize(n);
}

// ------------------------------------------------------------------------------------------- the point

void FrankWolfe::add_point(const Block& block, double* w) const {
    PlaneParts& written = scratch_->planes;
    written.clear();
    block.point.write(written);
    const double one = 1.0;
    space_->add(written, &one, {w}, *scratch_);
    std::vector<double> alpha;
    for (const Kept& kept : block.kept) alpha.push_back(kept.alpha);
    space_->add(block.parts, alpha.data(), {w}, *scratch_);
}

void FrankWolfe::weights(double* w) {
    std::fill(w, w + space_->n_weights(), 0.0);
    for (const Block& block : blocks_) {
        heartbeat();
        add_point(block, w);
    }
    nonnegative_.take_sums(w);
}

// 2/(K(K+1)), of the weighted sum of steps.
double FrankWolfe::share_of_steps() const {
    const auto K = static_cast<double>(n_steps_);
    return n_steps_ > 0 ? 2.0 / (K * (K + 1.0)) : 0.0;
}

void FrankWolfe::average(double* w) const {
    std::fill(w, w + space_->n_weights(), 0.0);
    const double back = -share_of_steps();
    for (const Block& block : blocks_) {
        heartbeat();
        add_point(block, w);
        PlaneParts& written = scratch_->planes;
        written.clear();
        block.steps.write(written);
        space_->add(written, &back, {w}, *scratch_);
    }
    nonnegative_.clip(w);
}

double FrankWolfe::loss() const {
    double sum = 0.0;
    for (const Block& block : blocks_) {
        sum += block.loss;
        for (const Kept& kept : block.kept) sum += kept.alpha * kept.loss;
    }
    return sum;
}

double FrankWolfe::average_loss() const { return loss() - share_of_steps() * step_losses_; }

std::vector<double> FrankWolfe::worth(std::span<const int64_t> ids, const double* w) const {
    const double norm = std::sqrt(std::inner_product(w, w + space_->n_weights(), w, 0.0));
    std::vector<double> out;
    for (const int64_t example : ids) {
        heartbeat();
        const Block& block = blocks_[example];
        PartVector point = block.point;
        double loss = block.loss, product = 0.0, square = 0.0;
        for (size_t p = 0; p < block.kept.size(); ++p) {
            point.add(block.kept[p].alpha, block.parts, p);
            loss += block.kept[p].alpha * block.kept[p].loss;
        }
        PlaneParts& written = scratch_->planes;
        written.clear();
        point.write(written);
        space_->dots(written, {w}, *scratch_, &product);
        space_->inner(written, 0, *scratch_, &square);
        const double rounding = PlaneSpace::rounding(loss, product, norm, square);
        out.push_back(budgets_[example] > 0.0 ? std::max(0.0, loss - product - rounding) / budgets_[example] : 0.0);
    }
    return out;
}

int64_t FrankWolfe::n_entries() const {
    size_t count = 0;
    for (const Block& block : blocks_) count += block.point.size() + block.steps.size();
    return static_cast<int64_t>(count);
}

int64_t FrankWolfe::n_planes() const {
    size_t count = 0;
    for (const Block& block : blocks_) count += block.kept.size();
    return static_cast<int64_t>(count);
}

}  // namespace maxmargin
