#include "inference/trws.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "inference/expansion.hpp"
#include "inference/messages.hpp"
#include "threads/parallel.hpp"

namespace maxmargin {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
// Single iterations may lower the bound by next to nothing while messages cross the graph.
constexpr size_t stall_iterations = 10;
// Moves over forests take as long as two to five iterations (with two labels, whose passes are faster, as ten to twenty), a round of expansion moves
// as five to ten. There is a round for every so many iterations, the first in runs of more than half as many.
constexpr size_t first_moves = 20, times_later = 4, iterations_per_round = 20;
// Enough to make good labels, if not the best, and to tell that there are none worth looking for.
constexpr int64_t brief_iterations = 10;
// What sums of many scores lose, as a share of them.
constexpr double rounding = 1e-13;

// The core's nodes in the order asked for.
std::vector<int32_t> core_in_order(const Leaves& leaves, std::vector<int32_t> order) {
    if (order.empty()) return leaves.core();
    std::erase_if(order, [&core = leaves.core()](int32_t node) { return !std::binary_search(core.begin(), core.end(), node); });
    return order;
}

}  // namespace

TreeReweighted::TreeReweighted(const GraphShape& shape, std::vector<int32_t> order)
    : label_offsets_(shape.label_offsets, shape.label_offsets + shape.n_nodes + 1),
      first_(shape.first, shape.first + shape.n_edges),
      second_(shape.second, shape.second + shape.n_edges),
      shape_{shape.n_nodes, label_offsets_.data(), shape.n_edges, first_.data(), second_.data()},
      links_(shape_),
      leaves_(shape_, links_),
      graph_(shape_, links_, core_in_order(leaves_, std::move(order))),
      passes_(make_passes(graph_)),
      core_labels_(graph_.n_nodes()) {}

void TreeReweighted::set_unary(const double* unary) {
    unary_.assign(unary, unary + label_offsets_.back());
    is_prepared_ = false;
}

void TreeReweighted::set_pairs(const PairScores& pairs) {
    pair_offsets_.clear();
    if (!pairs.is_potts()) pair_offsets_.assign(pairs.offsets, pairs.offsets + shape_.n_edges);
    pairs_ = {pairs.values, pairs.is_potts() ? nullptr : pair_offsets_.data()};
    links_.set_scores(shape_, pairs_);
    is_prepared_ = false;
}

void TreeReweighted::reset_messages() {
    passes_->reset();
    is_prepared_ = false;
}

// Messages are differences of sums, which −∞ would turn into NaN. A number so low that no other scores make up for it does as
// well: twice the distance between the highest and the lowest score of any labelling.
void TreeReweighted::soften_forbidden() {
    if (std::find(reduced_.begin(), reduced_.end(), -infinity) == reduced_.end()) return;
    // More than what is lost beside the largest score.
    double range = 1.0;
    for (const double score : reduced_)
        if (score > -infinity) range = std::max(range, 1e-10 * std::abs(score));
    for (int64_t l = 0; l < links_.size(); ++l) {
        const LinkScores link = links_.scores(l);
        range += link.table ? range_of({link.table, static_cast<size_t>(link.n_first) * link.n_second}) : std::abs(link.potts);
    }
    std::vector<double> lowest(shape_.n_nodes, infinity);
    for (int64_t i = 0; i < shape_.n_nodes; ++i) {
        double highest = -infinity;
        for (int64_t k = label_offsets_[i]; k < label_offsets_[i + 1]; ++k) {
            highest = std::max(highest, reduced_[k]);
            if (reduced_[k] > -infinity) lowest[i] = std::min(lowest[i], reduced_[k]);
        }
        range += highest - lowest[i];
    }
    for (int64_t i = 0; i < shape_.n_nodes; ++i)
        for (int64_t k = label_offsets_[i]; k < label_offsets_[i + 1]; ++k)
            if (reduced_[k] == -infinity) reduced_[k] = lowest[i] - 2.0 * range;
}

// The largest of all scores; of a table how far its scores are apart, which is what it decides.
double TreeReweighted::largest_score() const {
    double largest = 0.0;
    for (const double score : unary_)
        if (score > -infinity) largest = std::max(largest, std::abs(score));
    for (int64_t l = 0; l < links_.size(); ++l) {
        const LinkScores link = links_.scores(l);
        largest = std::max(largest, link.table ? range_of({link.table, static_cast<size_t>(link.n_first) * link.n_second}) : std::abs(link.potts));
    }
    return largest;
}

void TreeReweighted::prepare() {
    largest_ = largest_score();
    reduced_ = unary_;
    soften_forbidden();
    leaf_messages_.resize(leaves_.message_size());
    best_of_trees_ = leaves_.eliminate(shape_, links_, reduced_.data(), leaf_messages_.data());
    std::vector<double> core_unary;
    for (const int32_t node : graph_.nodes) core_unary.insert(core_unary.end(), reduced_.begin() + label_offsets_[node], reduced_.begin() + label_offsets_[node + 1]);
    passes_->set_scores(core_unary.data(), links_);
    core_score_ = -infinity;
    // What was best before is a labelling still.
    score_ = labels_.empty() ? -infinity : total_score(shape_, unary_.data(), pairs_, labels_.data());
    labels_have_moved_ = false;
    offers_help_ = true;
    is_prepared_ = true;
}

// The labels that the last forward pass chose, and those of the leaves given them.
std::vector<int32_t> TreeReweighted::rounded() const {
    std::vector<int32_t> labels(shape_.n_nodes);
    for (int64_t p = 0; p < graph_.n_nodes(); ++p) labels[graph_.nodes[p]] = core_labels_[p];
    leaves_.extend(shape_, links_, reduced_.data(), labels.data());
    return labels;
}

void TreeReweighted::take_if_better(std::vector<int32_t> labels) {
    const double score = total_score(shape_, unary_.data(), pairs_, labels.data());
    if (!labels_.empty() && score <= score_) return;
    score_ = score;
    labels_ = std::move(labels);
    labels_have_moved_ = false;
}

// From the best labels so far, or where those have moved already from the last ones.
void TreeReweighted::move_labels(size_t n_iterations, const std::function<bool()>& is_over) {
    if (is_over()) return;
    const auto most_rounds = static_cast<int64_t>((n_iterations + iterations_per_round / 2 - 1) / iterations_per_round);
    std::vector<int32_t> labels = labels_have_moved_ ? rounded() : labels_;
    if (!moves_) moves_ = std::make_unique<ForestMoves>(shape_, links_);
    moves_->improve(shape_, links_, unary_.data(), is_over, labels);
    if (most_rounds > 0 && offers_help_) {
        if (!fusion_) fusion_ = std::make_unique<Fusion>(shape_);
        offers_help_ = expand(*fusion_, shape_, unary_, pairs_, most_rounds, is_over, labels).n_moves > 0;
        if (offers_help_) moves_->improve(shape_, links_, unary_.data(), is_over, labels);
    }
    take_if_better(std::move(labels));
    labels_have_moved_ = most_rounds > 0 && !is_over();
}

// Measured against the scores of the core: those of trees, which are exact, may be larger by any factor.
bool TreeReweighted::is_closed(const TreeReweightedOptions& options) const {
    const auto larger = [](double a, double b) { return std::max(std::abs(a), std::abs(b)); };
    const double core = larger(bound_ - best_of_trees_, score_ - best_of_trees_);
    return bound_ - score_ <= options.absolute_tolerance * std::min(1.0, largest_) + options.relative_tolerance * core + rounding * larger(bound_, score_);
}

bool TreeReweighted::is_stalled(const std::vector<double>& bounds, const TreeReweightedOptions& options) const {
    if (bounds.size() <= stall_iterations) return false;
    return bounds[bounds.size() - 1 - stall_iterations] - bound_ < options.stall * (bound_ - score_);
}

TreeReweightedResult TreeReweighted::run(const TreeReweightedOptions& options) {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    const auto is_over = [&] { return std::chrono::duration<double>(Clock::now() - start).count() >= options.max_seconds; };
    size_t next_moves = first_moves;
    bool has_moved = false;
    TreeReweightedResult result;
    result.stop = TreeReweightedStop::max_iter;
    try {
        if (!is_prepared_) prepare();
        while (result.stop == TreeReweightedStop::max_iter && static_cast<int64_t>(result.bounds.size()) < std::max<int64_t>(options.max_iter, 1)) {
            const double core_score = passes_->forward(core_labels_.data());
            if (core_score > core_score_ || labels_.empty()) {
                core_score_ = core_score;
                take_if_better(rounded());
            }
            // The score itself is a bound of the bound: rounding may take the sum of many messages below it.
            bound_ = std::max(passes_->backward() + best_of_trees_, score_);
            result.bounds.push_back(bound_);
            heartbeat();

            has_moved = result.bounds.size() == next_moves && bound_ > options.floor && !is_closed(options);
            if (has_moved) {
                move_labels(next_moves, is_over);
                next_moves *= times_later;
            }
            if (is_closed(options)) result.stop = TreeReweightedStop::closed;
            else if (bound_ <= options.floor) result.stop = TreeReweightedStop::below_floor;
            else if (is_stalled(result.bounds, options)) result.stop = TreeReweightedStop::stalled;
            else if (is_over()) result.stop = TreeReweightedStop::max_seconds;
        }
        if (result.stop != TreeReweightedStop::closed && result.stop != TreeReweightedStop::below_floor && !has_moved) {
            move_labels(result.bounds.size(), is_over);
            if (is_closed(options)) result.stop = TreeReweightedStop::closed;
        }
    } catch (...) {
        reset_messages();
        throw;
    }
    result.score = score_;
    result.bounds.back() = result.bound = bound_ = std::max(bound_, score_);
    return result;
}

void TreeReweighted::bound_max_marginals(double* out) {
    std::vector<double> of_core(graph_.label_begin.back());
    try {
        passes_->forward(core_labels_.data());
        passes_->backward();
        passes_->shortfalls(of_core.data());
        for (int64_t p = 0; p < graph_.n_nodes(); ++p)
            std::copy_n(of_core.data() + graph_.label_begin[p], graph_.n_labels(p), out + label_offsets_[graph_.nodes[p]]);
        leaves_.max_marginals(shape_, links_, reduced_.data(), leaf_messages_.data(), bound_, out);
    } catch (...) {
        reset_messages();
        throw;
    }
}

Found TreeReweightedSearch::best(const double* unary, int32_t* labels) { return best_above(-infinity, false, unary, labels); }

Found TreeReweightedSearch::best_above(double floor, bool is_brief, const double* unary, int32_t* labels) {
    passes_->set_unary(unary);
    TreeReweightedOptions options = options_;
    options.floor = floor;
    if (is_brief) options.max_iter = std::min(options.max_iter, brief_iterations);
    const TreeReweightedResult result = passes_->run(options);
    std::copy(passes_->labels().begin(), passes_->labels().end(), labels);
    return {result.score, result.bound, result.stop == TreeReweightedStop::closed};
}

}  // namespace maxmargin
