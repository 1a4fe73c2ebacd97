#include "structures/graph.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "inference/m_best.hpp"
#include "inference/max_marginals.hpp"

namespace maxmargin {

namespace {
// What is enough for a good labelling when messages are kept.
constexpr int64_t few_passes = 5;

// What work returns; an error says in which graph.
template <class Work>
auto naming(int64_t example, Work&& work) {
    try {
        return work();
    } catch (const std::invalid_argument& error) {
        throw std::invalid_argument("graph " + std::to_string(example) + ": " + error.what());
    }
}
}  // namespace

Graph::Graph(const GraphData& data) : data_(data), searches_(data.n_examples), shortfalls_(data.n_examples, 0.0) {
    // Potts: labels that agree share a column with coefficient 1, others score nothing.
    is_potts_ = !data_.candidates && data_.n_pair_columns == 1;
    for (int a = 0; is_potts_ && a < data_.n_labels; ++a)
        for (int b = 0; b < data_.n_labels; ++b) {
            const int64_t pair = static_cast<int64_t>(a) * data_.n_labels + b;
            if (data_.pair_column[pair] != (a == b ? 0 : -1) || (a == b && data_.pair_coefficient[pair] != 1.0)) is_potts_ = false;
        }
}

RowRange Graph::rows(int64_t example) const {
    const RowRange own = nodes(example);
    return data_.candidates ? RowRange{data_.candidates[own.begin], data_.candidates[own.end]} : own;
}

bool Graph::is_code(int64_t example, std::span<const int32_t> numbers) const {
    if (static_cast<int64_t>(numbers.size()) != code_length(example)) return false;
    const int64_t first = nodes(example).begin;
    for (size_t i = 0; i < numbers.size(); ++i)
        if (numbers[i] < 0 || numbers[i] >= labels_of(first + static_cast<int64_t>(i))) return false;
    return true;
}

Graph::PairPlace Graph::place_of(int64_t edge, int32_t a, int32_t b, int n_second) const {
    if (data_.candidates) return {data_.pair_rows[edge] + static_cast<int64_t>(a) * n_second + b, 0, 1.0};
    const int64_t pair = static_cast<int64_t>(a) * data_.n_labels + b;
    return {edge, data_.pair_column[pair], data_.pair_coefficient[pair]};
}

template <class Scalar>
double Graph::pair_score(int64_t edge, PairPlace place, const Scalar* table) const {
    if (place.column < 0) return 0.0;
    const Scalar* weights = table + first_weight(edge) + place.column;
    const double* features = data_.edge_features + place.row * data_.n_edge_features;
    double sum = 0.0;
    for (int64_t j = 0; j < data_.n_edge_features; ++j) sum += features[j] * static_cast<double>(weights[j * data_.n_pair_columns]);
    return place.coefficient * sum;
}

template <class Scalar>
void Graph::score_pairs(int64_t example, const Scalar* table, GraphSearch& search) const {
    const RowRange own = edges(example);
    for (int64_t e = own.begin; e < own.end; ++e) {
        double* scores = search.pairs(e - own.begin);
        if (is_potts_) {
            *scores = pair_score(e, {e, 0, 1.0}, table);
            continue;
        }
        const int n_first = search.shape().n_labels(data_.first[e]), n_second = search.shape().n_labels(data_.second[e]);
        for (int32_t a = 0; a < n_first; ++a)
            for (int32_t b = 0; b < n_second; ++b) *scores++ = pair_score(e, place_of(e, a, b, n_second), table);
    }
}

template <class Scalar>
GraphSearch& Graph::scored(int64_t example, PartScores<Scalar> scores, Search kind) const {
    const RowRange own = nodes(example);
    std::unique_ptr<GraphSearch>& search = searches_[example];
    if (!search) {
        std::vector<int32_t> counts;
        for (int64_t i = own.begin; i < own.end; ++i) counts.push_back(labels_of(i));
        const RowRange mine = edges(example);
        search = std::make_unique<GraphSearch>(counts, mine.length(), data_.first + mine.begin, data_.second + mine.begin, is_potts_, data_.inference);
    }
    const Scalar* node = scores.node;
    double* unary = search->unary();
    for (int64_t i = own.begin; i < own.end; ++i)
        for (int32_t label = 0; label < labels_of(i); ++label) {
            *unary = static_cast<double>(data_.candidates ? *node : node[label]);
            if (kind == Search::margin) *unary += data_.loss(i, data_.truth[i], label, data_.n_labels);
            ++unary;
            if (data_.candidates || label + 1 == data_.n_labels) node += scores.stride;
        }
    if (!scores.same_table) {
        score_pairs(example, scores.table, *search);
        search->pairs_changed();
    }
    return *search;
}

int64_t Graph::n_enumerated(int64_t example) const {
    const RowRange own = nodes(example);
    std::vector<int64_t> offsets{0};
    for (int64_t i = own.begin; i < own.end; ++i) offsets.push_back(offsets.back() + labels_of(i));
    return count_enumerated({own.length(), offsets.data(), 0, nullptr, nullptr});
}

bool Graph::has_slack_search() const {
    if (data_.inference.method != GraphMethod::automatic && data_.inference.method != GraphMethod::enumeration) return false;
    for (int64_t example = 0; example < data_.n_examples; ++example)
        if (n_enumerated(example) > most_enumerated) return false;
    return true;
}

template <class Scalar>
void Graph::search_slack(int64_t example, PartScores<Scalar> scores, int32_t* code) const {
    const RowRange own = nodes(example);
    std::vector<double> losses;
    for (int64_t i = own.begin; i < own.end; ++i)
        for (int32_t label = 0; label < labels_of(i); ++label) losses.push_back(data_.loss(i, data_.truth[i], label, data_.n_labels));
    scored(example, scores, Search::slack).best_product(losses.data(), data_.truth + own.begin, code);
    shortfalls_[example] = 0.0;
    count(GraphMethod::enumeration);
}

template <class Scalar>
void Graph::search_any(int64_t example, PartScores<Scalar> scores, Search kind, int32_t* code) const {
    if (kind == Search::slack) return search_slack(example, scores, code);
    GraphSearch& search = scored(example, scores, kind);
    Found found = naming(example, [&] { return search.best(code, scores.is_rough ? few_passes : most_passes_); });
    count(search.method());
    // Scores beyond the range of numbers order nothing.
    if (!std::isfinite(found.score)) found = {found.score, std::numeric_limits<double>::quiet_NaN(), false};
    if (kind == Search::margin) {
        // Ties with the truth go to the truth: a plane of value 0 is worth nothing.
        const int32_t* truth = data_.truth + nodes(example).begin;
        const double of_truth = search.score(truth);
        if (of_truth >= found.score) {
            std::copy_n(truth, code_length(example), code);
            found.score = of_truth;
        }
    }
    if (scores.is_rough) return;
    shortfalls_[example] = found.is_exact ? 0.0 : found.bound <= found.score ? 0.0 : found.bound - found.score;
    if (!found.is_exact) ++n_open_;
}

bool Graph::is_truth(int64_t example, const int32_t* code) const {
    const RowRange own = nodes(example);
    return std::equal(code, code + own.length(), data_.truth + own.begin);
}

double Graph::loss(int64_t example, const int32_t* code) const {
    const RowRange own = nodes(example);
    double sum = 0.0;
    for (int64_t i = own.begin; i < own.end; ++i) sum += data_.loss(i, data_.truth[i], code[i - own.begin], data_.n_labels);
    return sum;
}

void Graph::add_edge(int64_t edge, int32_t a, int32_t b, int n_second, double sign, std::vector<double>& sums, std::vector<int64_t>& touched) const {
    const PairPlace place = place_of(edge, a, b, n_second);
    if (place.column < 0) return;
    const double* features = data_.edge_features + place.row * data_.n_edge_features;
    const int64_t first = first_weight(edge) + place.column;
    if (touched.empty() || touched.back() != first) touched.push_back(first);
    double* at = sums.data() + first;
    for (int64_t j = 0; j < data_.n_edge_features; ++j) at[j * data_.n_pair_columns] += sign * place.coefficient * features[j];
}

void Graph::between(int64_t example, const int32_t* right, const int32_t* code, Parts& parts) const {
    const RowRange own = nodes(example), mine = edges(example);
    for (int64_t i = own.begin; i < own.end; ++i) {
        const int32_t one = right[i - own.begin], other = code[i - own.begin];
        if (one == other) continue;
        if (data_.candidates) {
            parts.nodes.push_back({data_.candidates[i] + one, 0, 1});
            parts.nodes.push_back({data_.candidates[i] + other, 0, -1});
        } else {
            parts.nodes.push_back({i, one, 1});
            parts.nodes.push_back({i, other, -1});
        }
    }
    // Many edges share few weights: they are summed first. The sums are 0 again at the end.
    static thread_local std::vector<double> sums;
    static thread_local std::vector<int64_t> touched;
    if (static_cast<int64_t>(sums.size()) < n_table()) sums.resize(n_table(), 0.0);
    touched.clear();
    for (int64_t e = mine.begin; e < mine.end; ++e) {
        const int32_t first = data_.first[e], second = data_.second[e];
        if (right[first] == code[first] && right[second] == code[second]) continue;
        const int n_second = labels_of(own.begin + second);
        add_edge(e, right[first], right[second], n_second, 1.0, sums, touched);
        add_edge(e, code[first], code[second], n_second, -1.0, sums, touched);
    }
    std::sort(touched.begin(), touched.end());
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
    for (const int64_t first : touched)
        for (int64_t j = 0; j < data_.n_edge_features; ++j) {
            double& sum = sums[first + j * data_.n_pair_columns];
            if (sum != 0.0) parts.table.push_back({first + j * data_.n_pair_columns, sum});
            sum = 0.0;
        }
}

void Graph::k_best(int64_t example, PartScores<double> scores, int64_t k, std::vector<int32_t>& codes, std::vector<double>& values) const {
    GraphSearch& search = scored(example, scores, Search::plain);
    Labellings found = naming(example, [&] { return m_best_labellings(search.shape(), search.unary(), *search.with_changes(), k); });
    count(search.method_with_changes());
    const bool are_finite = std::all_of(found.scores.begin(), found.scores.end(), [](double score) { return std::isfinite(score); });
    if (!found.is_exact || !are_finite) ++n_open_;
    codes = std::move(found.labels);
    values = std::move(found.scores);
}

void Graph::max_marginals(int64_t example, PartScores<double> scores, double* out) const {
    GraphSearch& search = scored(example, scores, Search::plain);
    const bool is_exact = naming(example, [&] { return maxmargin::max_marginals(search.shape(), search.unary(), *search.with_changes(), out); });
    count(search.method_with_changes());
    if (!is_exact) ++n_open_;
}

double Graph::score(int64_t example, PartScores<double> scores, const int32_t* code) const {
    return scored(example, scores, Search::plain).score(code);
}

}  // namespace maxmargin
