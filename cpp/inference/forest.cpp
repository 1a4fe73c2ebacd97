#include "inference/forest.hpp"

namespace maxmargin {

ForestSearch::ForestSearch(const GraphShape& shape, const PairScores& pairs) : shape_(shape), pairs_(pairs), links_(shape), leaves_(shape, links_) {
    links_.set_scores(shape, pairs);
}

Found ForestSearch::best(const double* unary, int32_t* labels) {
    scores_.assign(unary, unary + shape_.label_offsets[shape_.n_nodes]);
    leaves_.eliminate(shape_, links_, scores_.data());
    leaves_.extend(shape_, links_, scores_.data(), labels);
    const double score = total_score(shape_, unary, pairs_, labels);
    return {score, score, true};
}

void ForestSearch::max_marginals(const double* unary, double* out) {
    scores_.assign(unary, unary + shape_.label_offsets[shape_.n_nodes]);
    messages_.resize(leaves_.message_size());
    const double best = leaves_.eliminate(shape_, links_, scores_.data(), messages_.data());
    leaves_.max_marginals(shape_, links_, scores_.data(), messages_.data(), best, out);
}

}  // namespace maxmargin
