// The pairs of nodes that are joined, each once: what parallel edges score is added. Message passing works on these links, so a
// graph whose only cycles are parallel edges is a forest, and the relaxation of TRW-S is as tight as the pairs allow.
#pragma once

#include <cstdint>
#include <vector>

#include "inference/pairwise.hpp"

namespace maxmargin {

// What the pairs of labels of one link score: a table (first's labels × second's) or, where it is null, Potts.
struct LinkScores {
    const double* table;
    double potts;
    int n_first, n_second;
};

class PairLinks {
   public:
    explicit PairLinks(const GraphShape& shape);

    // The values must outlive their use: tables of links made of one edge are not copied.
    void set_scores(const GraphShape& shape, const PairScores& pairs);

    int64_t size() const { return static_cast<int64_t>(links_.size()); }
    int32_t first(int64_t link) const { return links_[link].first; }
    int32_t second(int64_t link) const { return links_[link].second; }
    int32_t other(int64_t link, int32_t node) const { return first(link) == node ? second(link) : first(link); }
    LinkScores scores(int64_t link) const {
        const Link& l = links_[link];
        return {l.table, l.potts, l.n_first, l.n_second};
    }

    // The links of a node are incident()[incident_begin()[node] … incident_begin()[node + 1]), ascending.
    const std::vector<int64_t>& incident_begin() const { return incident_begin_; }
    const std::vector<int64_t>& incident() const { return incident_; }

   private:
    struct Link {
        int32_t first, second;  // as in the earliest edge
        int n_first, n_second;
        int64_t edges_begin, edges_end;  // in edges_
        const double* table = nullptr;
        double potts = 0.0;
    };
    void add_tables(const GraphShape& shape, const PairScores& pairs, const Link& link, double* sum) const;

    std::vector<Link> links_;
    std::vector<int64_t> edges_;  // grouped by link
    std::vector<int64_t> incident_begin_, incident_;
    std::vector<double> sums_;  // tables of links made of several edges
};

}  // namespace maxmargin
