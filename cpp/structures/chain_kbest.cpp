// The k best sequences of a chain: Viterbi in the algebra of sorted lists of at most k scores.
#include <algorithm>
#include <vector>

#include "structures/chain.hpp"
#include "threads/parallel.hpp"

namespace maxmargin {

namespace {

struct Entry {
    double score;
    int32_t from;  // label before
    int32_t rank;  // which of that label's entries
};

void keep_best(std::vector<Entry>& entries, int64_t k) {
    const auto better = [](const Entry& a, const Entry& b) { return a.score > b.score; };
    const auto kept = std::min<int64_t>(k, static_cast<int64_t>(entries.size()));
    std::partial_sort(entries.begin(), entries.begin() + kept, entries.end(), better);
    entries.resize(kept);
}

}  // namespace

void Chain::k_best(int64_t example, PartScores<double> scores, int64_t k, std::vector<int32_t>& codes, std::vector<double>& values) const {
    const Prepared<double> ends = prepared(scores);
    const int64_t length = rows(example).length();
    const int n = data_.n_labels, stride = scores.stride;
    std::vector<std::vector<Entry>> lists(length * n);
    for (int32_t label = 0; label < n; ++label) lists[label] = {{ends.start[label] + scores.node[label], -1, 0}};
    std::vector<Entry> pool;
    for (int64_t t = 1; t < length; ++t)
        for (int32_t to = 0; to < n; ++to) {
            heartbeat();
            pool.clear();
            for (int32_t from = 0; from < n; ++from) {
                if (data_.forbidden && data_.forbidden[from * n + to]) continue;
                const auto& before = lists[(t - 1) * n + from];
                for (size_t rank = 0; rank < before.size(); ++rank)
                    pool.push_back({before[rank].score + ends.transition[from * stride + to] + scores.node[t * stride + to], from,
                                    static_cast<int32_t>(rank)});
            }
            keep_best(pool, k);
            lists[t * n + to] = pool;
        }
    pool.clear();
    for (int32_t label = 0; label < n; ++label) {
        const auto& last = lists[(length - 1) * n + label];
        for (size_t rank = 0; rank < last.size(); ++rank)
            pool.push_back({last[rank].score + ends.stop[label], label, static_cast<int32_t>(rank)});
    }
    keep_best(pool, k);
    codes.resize(pool.size() * length);
    values.resize(pool.size());
    for (size_t m = 0; m < pool.size(); ++m) {
        values[m] = pool[m].score;
        int32_t label = pool[m].from, rank = pool[m].rank;
        for (int64_t t = length - 1; t >= 0; --t) {
            codes[m * length + t] = label;
            const Entry& entry = lists[t * n + label][rank];
            label = entry.from;
            rank = entry.rank;
        }
    }
}

}  // namespace maxmargin
