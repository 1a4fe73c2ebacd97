#include "inference/links.hpp"

#include <algorithm>
#include <numeric>

namespace maxmargin {

PairLinks::PairLinks(const GraphShape& shape) : edges_(shape.n_edges), incident_begin_(shape.n_nodes + 1, 0) {
    const auto ends = [&shape](int64_t e) { return std::minmax(shape.first[e], shape.second[e]); };
    const auto joins_before = [&ends](int64_t a, int64_t b) { return ends(a) < ends(b); };
    std::iota(edges_.begin(), edges_.end(), int64_t{0});
    if (!std::is_sorted(edges_.begin(), edges_.end(), joins_before)) std::stable_sort(edges_.begin(), edges_.end(), joins_before);
    for (int64_t k = 0; k < shape.n_edges; ++k) {
        const int64_t e = edges_[k];
        if (!links_.empty() && ends(edges_[links_.back().edges_begin]) == ends(e)) {
            links_.back().edges_end = k + 1;
            continue;
        }
        const int32_t a = shape.first[e], b = shape.second[e];
        links_.push_back({a, b, shape.n_labels(a), shape.n_labels(b), k, k + 1});
    }
    for (const Link& link : links_) {
        ++incident_begin_[link.first + 1];
        ++incident_begin_[link.second + 1];
    }
    std::partial_sum(incident_begin_.begin(), incident_begin_.end(), incident_begin_.begin());
    incident_.resize(2 * links_.size());
    std::vector<int64_t> next(incident_begin_.begin(), incident_begin_.end() - 1);
    for (int64_t l = 0; l < size(); ++l) {
        incident_[next[links_[l].first]++] = l;
        incident_[next[links_[l].second]++] = l;
    }
}

void PairLinks::set_scores(const GraphShape& shape, const PairScores& pairs) {
    sums_.clear();
    if (!pairs.is_potts()) {
        size_t n_sums = 0;
        for (const Link& link : links_)
            if (link.edges_end - link.edges_begin > 1) n_sums += static_cast<size_t>(link.n_first) * link.n_second;
        sums_.assign(n_sums, 0.0);
    }
    double* sum = sums_.data();
    for (Link& link : links_) {
        link.table = nullptr;
        link.potts = 0.0;
        if (pairs.is_potts()) {
            for (int64_t k = link.edges_begin; k < link.edges_end; ++k) link.potts += pairs.values[edges_[k]];
        } else if (link.edges_end - link.edges_begin == 1) {
            link.table = pairs.values + pairs.offsets[edges_[link.edges_begin]];
        } else {
            add_tables(shape, pairs, link, sum);
            link.table = sum;
            sum += static_cast<int64_t>(link.n_first) * link.n_second;
        }
    }
}

void PairLinks::add_tables(const GraphShape& shape, const PairScores& pairs, const Link& link, double* sum) const {
    for (int64_t k = link.edges_begin; k < link.edges_end; ++k) {
        const double* table = pairs.values + pairs.offsets[edges_[k]];
        const bool is_turned = shape.first[edges_[k]] != link.first;
        for (int64_t a = 0; a < link.n_first; ++a)
            for (int64_t b = 0; b < link.n_second; ++b)
                sum[a * link.n_second + b] += is_turned ? table[b * link.n_first + a] : table[a * link.n_second + b];
    }
}

}  // namespace maxmargin
