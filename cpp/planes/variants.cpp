#include "planes/variants.hpp"

#include <algorithm>
#include <cmath>

#include "planes/diverse.hpp"
#include "planes/linear_scratch.hpp"
#include "planes/linear_space.hpp"

namespace maxmargin {

namespace {

// Numbers that depend on the seed and the example alone, whichever thread asks (Steele, Lea and Flood 2014, SplitMix64).
class Chance {
  public:
    Chance(uint64_t seed, int64_t example) : state_(seed * 0x9E3779B97F4A7C15ull + static_cast<uint64_t>(example)) { next(); }
    // In [0, 1).
    double next() {
        uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
        return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1.0p-53;
    }

  private:
    uint64_t state_;
};

// Another label of a place, drawn by exp(score).
int32_t redrawn(const Structure& structure, int64_t example, int64_t place, int32_t now, PartScores<double> scores, Chance& chance) {
    const int n_labels = structure.labels_at(example, place);
    if (n_labels == 1) return now;
    const auto score = [&](int32_t label) { return scores.node[structure.score_place(example, place, label, scores.stride)]; };
    double highest = -INFINITY, total = 0.0;
    for (int32_t label = 0; label < n_labels; ++label)
        if (label != now) highest = std::max(highest, score(label));
    for (int32_t label = 0; label < n_labels; ++label)
        if (label != now) total += std::exp(score(label) - highest);
    double left = chance.next() * total;
    int32_t last = now;
    for (int32_t label = 0; label < n_labels; ++label) {
        if (label == now) continue;
        last = label;
        left -= std::exp(score(label) - highest);
        if (left < 0.0) break;
    }
    return last;
}

class VariantSearch {
  public:
    VariantSearch(const Structure& structure, const VariantOptions& options) : structure_(structure), options_(options) {}

    // The outputs of an example, one after the other; fewer where there are no more.
    const std::vector<std::vector<int32_t>>& find(int64_t example, PartScores<double> scores, std::vector<double>& node) {
        switch (options_.source) {
            // Any output makes a valid cut: the bound is that of the first.
            case VariantSource::diverse: codes_ = diverse_outputs(structure_, example, scores, Search::margin, options_.strengths, true); break;
            case VariantSource::m_best: find_best(example, scores, node); break;
            case VariantSource::random: find_random(example, scores); break;
        }
        return codes_;
    }

  private:
    void find_best(int64_t example, PartScores<double> scores, std::vector<double>& node) {
        const auto length = static_cast<size_t>(structure_.code_length(example));
        for (size_t t = 0; t < length; ++t) {
            const auto place = static_cast<int64_t>(t);
            for (int32_t label = 0; label < structure_.labels_at(example, place); ++label)
                node[structure_.score_place(example, place, label, scores.stride)] += structure_.loss_at(example, place, label);
        }
        structure_.k_best(example, scores, static_cast<int64_t>(options_.strengths.size()) + 1, best_codes_, best_values_);
        codes_.clear();
        for (size_t m = 0; m < best_values_.size(); ++m)
            codes_.emplace_back(best_codes_.begin() + static_cast<int64_t>(m * length), best_codes_.begin() + static_cast<int64_t>((m + 1) * length));
    }

    void find_random(int64_t example, PartScores<double> scores) {
        codes_ = diverse_outputs(structure_, example, scores, Search::margin, {});
        Chance chance(options_.seed, example);
        for (const double share : options_.strengths) {
            std::vector<int32_t> code = codes_[0];
            for (size_t t = 0; t < code.size(); ++t)
                if (chance.next() < share) code[t] = redrawn(structure_, example, static_cast<int64_t>(t), code[t], scores, chance);
            codes_.push_back(std::move(code));
        }
    }

    const Structure& structure_;
    const VariantOptions& options_;
    std::vector<std::vector<int32_t>> codes_;
    std::vector<int32_t> best_codes_;
    std::vector<double> best_values_;
};

}  // namespace

Variants LinearSpace::variants(std::span<const int64_t> ids, const double* w, const VariantOptions& options, const Workers& workers) const {
    const auto n = static_cast<int64_t>(ids.size());
    const size_t n_outputs = options.strengths.size() + 1;
    std::vector<double> table;
    structure_->prepare(w + table_start(), stride_, table);
    struct Found {
        std::vector<std::vector<int32_t>> codes;
        std::vector<double> diversity;
        double most = 0.0;
    };
    std::vector<Found> found(n);
    for_each_chunk(n, workers, [&](int64_t k, int) {
        const int64_t example = ids[k];
        const RowRange range = structure_->rows(example);
        std::vector<double> node(range.length() * stride_);
        score_rows(ScoreTask<double>{&features_, nullptr, range.begin, range.length(), w, stride_, node.data()});
        VariantSearch search(*structure_, options);
        Found& mine = found[k];
        mine.codes = search.find(example, PartScores<double>{node.data(), stride_, table.data()}, node);
        const int64_t length = structure_->code_length(example);
        for (int64_t t = 0; t < length; ++t) mine.most += structure_->place_weight(example, t);
        for (size_t m = 0; m + 1 < mine.codes.size(); ++m) {
            const std::vector<int32_t>& other = mine.codes[options.source == VariantSource::random ? 0 : m];
            double differing = 0.0;
            for (int64_t t = 0; t < length; ++t)
                if (mine.codes[m + 1][t] != other[t]) differing += structure_->place_weight(example, t);
            mine.diversity.push_back(differing);
        }
    });
    // In the order of the examples, whichever thread had them.
    Variants all;
    all.planes.resize(n_outputs);
    all.diversity.assign(n_outputs - 1, 0.0);
    for (int64_t k = 0; k < n; ++k) {
        const int64_t example = ids[k];
        const Found& mine = found[k];
        all.most += mine.most;
        for (size_t m = 0; m < mine.diversity.size(); ++m) all.diversity[m] += mine.diversity[m];
        for (size_t m = 0; m < n_outputs; ++m) {
            // Where an example has fewer outputs its last one stands for the others.
            const std::vector<int32_t>& code = mine.codes[std::min(m, mine.codes.size() - 1)];
            if (!structure_->is_truth(example, code.data())) all.planes[m].add(static_cast<int32_t>(example), structure_->loss(example, code.data()), code);
        }
    }
    return all;
}

}  // namespace maxmargin
