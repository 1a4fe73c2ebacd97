#include "inference/graph_search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "inference/expansion.hpp"

namespace maxmargin {

namespace {
// Graphs with at most so many labellings are enumerated: it takes less time than passes do.
constexpr int64_t few_labellings = 4096;
}  // namespace

GraphSearch::GraphSearch(std::span<const int32_t> label_counts, int64_t n_edges, const int32_t* first, const int32_t* second, bool is_potts,
                         const GraphInference& inference)
    : inference_(inference) {
    label_offsets_.assign(1, 0);
    for (const int32_t n : label_counts) label_offsets_.push_back(label_offsets_.back() + n);
    shape_ = {static_cast<int64_t>(label_counts.size()), label_offsets_.data(), n_edges, first, second};
    unary_.assign(label_offsets_.back(), 0.0);
    int64_t n_values = n_edges;
    if (!is_potts) {
        n_values = 0;
        for (int64_t e = 0; e < n_edges; ++e) {
            pair_offsets_.push_back(n_values);
            n_values += static_cast<int64_t>(label_counts[first[e]]) * label_counts[second[e]];
        }
    }
    pair_values_.assign(n_values, 0.0);
    has_two_labels_ = std::all_of(label_counts.begin(), label_counts.end(), [](int32_t n) { return n <= 2; });
    is_few_ = count_enumerated(shape_) <= few_labellings;
    is_forest_ = ForestSearch(shape_, pair_scores()).is_forest();
    pairs_changed();
}

void GraphSearch::pairs_changed() {
    method_ = method_for_pairs();
    cut_has_pairs_ = passes_have_pairs_ = false;
}

// Cheap and exact ones first.
GraphMethod GraphSearch::method_for_pairs() const {
    if (inference_.method != GraphMethod::automatic) return inference_.method;
    if (is_forest_) return GraphMethod::forest;
    if (has_two_labels_ && likes_agreement()) return GraphMethod::cut;
    return is_few_ ? GraphMethod::enumeration : GraphMethod::trws;
}

bool GraphSearch::likes_agreement() const {
    if (pair_offsets_.empty()) return std::all_of(pair_values_.begin(), pair_values_.end(), [](double value) { return value >= 0.0; });
    for (int64_t e = 0; e < shape_.n_edges; ++e) {
        if (shape_.n_labels(shape_.first[e]) < 2 || shape_.n_labels(shape_.second[e]) < 2) continue;
        const double* table = pair_values_.data() + pair_offsets_[e];
        if (table[0] + table[3] < table[1] + table[2]) return false;
    }
    return true;
}

Found GraphSearch::best(int32_t* labels, int64_t most_passes) {
    switch (method_) {
        case GraphMethod::cut: return by_cut(labels);
        case GraphMethod::trws: return by_passes(most_passes, labels);
        case GraphMethod::expansion: return by_expansion(labels);
        case GraphMethod::forest:
            return forest().best(unary_.data(), labels);
        default:
            return enumeration().best(unary_.data(), labels);
    }
}

ForestSearch GraphSearch::forest() const {
    if (!is_forest_) throw std::invalid_argument("inference='forest' needs graphs without cycles, and this one has a cycle: use 'trws' or 'auto'.");
    return {shape_, pair_scores()};
}

EnumerationSearch GraphSearch::enumeration() const {
    if (count_enumerated(shape_) > most_enumerated)
        throw std::invalid_argument("inference='enumeration' needs graphs with few labellings, and this one has too many: use 'trws' or 'auto'.");
    return {shape_, pair_scores()};
}

void GraphSearch::best_product(const double* losses, const int32_t* truth, int32_t* labels) {
    if (!enumeration().best_product(unary_.data(), losses, score(truth), labels)) std::copy_n(truth, shape_.n_nodes, labels);
}

Found GraphSearch::by_cut(int32_t* labels) {
    if (!cut_) cut_ = std::make_unique<GraphCut>(shape_);
    cut_->set_unary_scores(unary_);
    if (!cut_has_pairs_) cut_->set_pair_scores(pair_scores());
    cut_has_pairs_ = true;
    const double score = cut_->solve({labels, static_cast<size_t>(shape_.n_nodes)});
    return {score, score, true};
}

std::shared_ptr<TreeReweighted> GraphSearch::passes() {
    if (!passes_) passes_ = std::make_shared<TreeReweighted>(shape_, std::vector<int32_t>{});
    if (!passes_have_pairs_) passes_->set_pairs(pair_scores());
    passes_have_pairs_ = true;
    return passes_;
}

Found GraphSearch::by_passes(int64_t most_passes, int32_t* labels) {
    passes()->set_unary(unary_.data());
    TreeReweightedOptions options = inference_.passes;
    options.max_iter = std::min(options.max_iter, most_passes);
    const TreeReweightedResult result = passes_->run(options);
    std::copy(passes_->labels().begin(), passes_->labels().end(), labels);
    return {result.score, std::max(result.bound, result.score), result.stop == TreeReweightedStop::closed};
}

Found GraphSearch::by_expansion(int32_t* labels) {
    check_expandable(shape_, pair_scores());
    const std::vector<int32_t> start = best_unary_labels(shape_, unary_);
    std::copy(start.begin(), start.end(), labels);
    const Expanded found = expand(shape_, unary_, pair_scores(), std::numeric_limits<int64_t>::max(), {labels, static_cast<size_t>(shape_.n_nodes)});
    // With two labels, what neither label's move improves is best: scores that like agreement are supermodular.
    return {found.score, has_two_labels_ ? found.score : std::numeric_limits<double>::quiet_NaN(), has_two_labels_};
}

GraphMethod GraphSearch::method_with_changes() const {
    if (method_ == GraphMethod::cut || method_ == GraphMethod::enumeration) return method_;
    if (method_ == GraphMethod::forest || is_forest_) return GraphMethod::forest;
    return is_few_ ? GraphMethod::enumeration : GraphMethod::trws;
}

std::unique_ptr<LabellingSearch> GraphSearch::with_changes() {
    if (method_ == GraphMethod::expansion) check_expandable(shape_, pair_scores());
    switch (method_with_changes()) {
        case GraphMethod::cut: return std::make_unique<GraphCutSearch>(shape_, pair_scores());
        case GraphMethod::forest: return std::make_unique<ForestSearch>(forest());
        case GraphMethod::enumeration: return std::make_unique<EnumerationSearch>(enumeration());
        default: return std::make_unique<TreeReweightedSearch>(passes(), inference_.passes);
    }
}

}  // namespace maxmargin
