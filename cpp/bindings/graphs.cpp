// Graphs of labels for Python. Arrays are not copied: the bound object keeps them alive.
#include <array>
#include <limits>
#include <map>
#include <memory>
#include <string>

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/checks.hpp"
#include "scores/kernels.hpp"
#include "structures/graph.hpp"

using namespace maxmargin;
using nb::arg;

namespace {

using Longs = Array1<int64_t>;
using Ints = Array1<int32_t>;

constexpr int64_t most_numbers = std::numeric_limits<int32_t>::max();

void check_offsets(const char* name, std::span<const int64_t> offsets, int64_t n, int64_t least) {
    require_length(name, offsets.size(), n + 1);
    require(offsets.front() == 0, std::string(name) + " must begin with 0.");
    for (size_t k = 0; k + 1 < offsets.size(); ++k)
        if (offsets[k + 1] - offsets[k] < least || offsets[k + 1] < offsets[k])
            throw std::invalid_argument(std::string(name) + " give number " + std::to_string(k) + " fewer than " + std::to_string(least) + ".");
}

void check_edges(const GraphData& data) {
    for (int64_t i = 0; i < data.n_examples; ++i) {
        const int64_t n_nodes = data.node_offsets[i + 1] - data.node_offsets[i];
        for (int64_t e = data.edge_offsets[i]; e < data.edge_offsets[i + 1]; ++e) {
            const bool fits = data.first[e] >= 0 && data.first[e] < n_nodes && data.second[e] >= 0 && data.second[e] < n_nodes;
            require(fits && data.first[e] != data.second[e], "edge " + std::to_string(e) + " does not join two nodes of graph " + std::to_string(i) + ".");
        }
    }
}

// Every label that the truth gives is one of its node, and every edge has a row for each pair of labels.
void check_candidates(const GraphData& data, int64_t n_rows) {
    for (int64_t i = 0; i < data.n_examples; ++i) {
        const int64_t first = data.node_offsets[i];
        const auto count = [&](int32_t node) { return data.candidates[first + node + 1] - data.candidates[first + node]; };
        for (int64_t e = data.edge_offsets[i]; e < data.edge_offsets[i + 1]; ++e)
            require(data.pair_rows[e + 1] - data.pair_rows[e] == count(data.first[e]) * count(data.second[e]),
                    "edge " + std::to_string(e) + " must have a row of features for each pair of candidates.");
        for (int64_t node = 0; data.truth && node < data.node_offsets[i + 1] - first; ++node)
            require(data.truth[first + node] >= 0 && data.truth[first + node] < count(static_cast<int32_t>(node)),
                    "truth of node " + std::to_string(node) + " of graph " + std::to_string(i) + " is none of its candidates.");
    }
    require(data.pair_rows[data.edge_offsets[data.n_examples]] == n_rows, "edge_features must have a row for each pair of candidates of each edge.");
}

// In the order of GraphMethod.
constexpr std::array<const char*, n_graph_methods> method_names{"auto", "forest", "cut", "enumeration", "trws", "expansion"};

GraphMethod method_of(const std::string& name) {
    for (int k = 0; k < n_graph_methods; ++k)
        if (name == method_names[k]) return static_cast<GraphMethod>(k);
    throw std::invalid_argument("inference must be 'auto', 'forest', 'cut', 'enumeration', 'trws' or 'expansion', found '" + name + "'.");
}

void make_graph(Graph* self, Longs node_offsets, Longs edge_offsets, Ints first, Ints second, Array2<double> edge_features, int n_labels,
                std::optional<Longs> candidates, std::optional<Longs> pair_rows, std::optional<Array2<int32_t>> pair_column,
                std::optional<Array2<double>> pair_coefficient, int n_pair_columns, std::optional<Ints> types, int n_types, std::optional<Ints> truth,
                std::optional<Array2<double>> cost, std::optional<Array1<double>> node_weight, const std::string& inference, int64_t max_iter, std::optional<double> max_seconds) {
    GraphData data;
    data.n_examples = static_cast<int64_t>(node_offsets.shape(0)) - 1;
    require_between("number of graphs", data.n_examples, 0, most_numbers);
    check_offsets("node_offsets", as_span(node_offsets), data.n_examples, 1);
    check_offsets("edge_offsets", as_span(edge_offsets), data.n_examples, 0);
    const int64_t n_nodes = node_offsets(data.n_examples), n_edges = edge_offsets(data.n_examples);
    data.node_offsets = node_offsets.data();
    data.edge_offsets = edge_offsets.data();
    require_length("first", first.shape(0), n_edges);
    require_length("second", second.shape(0), n_edges);
    data.first = first.data();
    data.second = second.data();
    check_edges(data);
    require_between("n_labels", n_labels, 1, most_labels);
    require_between("n_types", n_types, 1, most_numbers);
    data.n_labels = n_labels;
    data.n_edge_features = static_cast<int64_t>(edge_features.shape(1));
    data.edge_features = edge_features.data();
    for (size_t k = 0; k < edge_features.size(); ++k) require(std::isfinite(edge_features.data()[k]), "edge_features must be finite.");
    data.n_types = n_types;
    data.types = data_or_null(types);
    if (types) {
        require_length("types", types->shape(0), n_edges);
        require_numbers_of("edge type", as_span(*types), n_types);
    }
    data.truth = data_or_null(truth);
    if (truth) require_length("truth", truth->shape(0), n_nodes);
    require(candidates.has_value() == pair_rows.has_value(), "candidates and pair_rows come together.");
    if (candidates) {
        require(n_labels == 1 && !cost && !pair_column, "nodes with candidates share no labels.");
        check_offsets("candidates", as_span(*candidates), n_nodes, 1);
        check_offsets("pair_rows", as_span(*pair_rows), n_edges, 0);
        data.candidates = candidates->data();
        data.pair_rows = pair_rows->data();
        check_candidates(data, static_cast<int64_t>(edge_features.shape(0)));
    } else {
        require(pair_column && pair_coefficient, "pairs of labels need columns and coefficients.");
        require_length("rows of edge_features", edge_features.shape(0), n_edges);
        require_between("n_pair_columns", n_pair_columns, 1, most_numbers);
        for (const size_t length : {pair_column->shape(0), pair_column->shape(1), pair_coefficient->shape(0), pair_coefficient->shape(1)})
            require_length("a side of pair_column and pair_coefficient", length, n_labels);
        for (size_t k = 0; k < pair_column->size(); ++k) {
            require_between("column of a pair of labels", pair_column->data()[k], -1, n_pair_columns - 1);
            require(std::isfinite(pair_coefficient->data()[k]), "pair_coefficient must be finite.");
        }
        data.n_pair_columns = n_pair_columns;
        data.pair_column = pair_column->data();
        data.pair_coefficient = pair_coefficient->data();
        if (truth) require_numbers_of("label number", as_span(*truth), n_labels);
        if (cost) {
            require_length("rows of cost", cost->shape(0), n_labels);
            require_length("columns of cost", cost->shape(1), n_labels);
            require_amounts("cost", {cost->data(), cost->size()});
        }
    }
    if (node_weight) {
        require_length("node_weight", node_weight->shape(0), n_nodes);
        require_amounts("node_weight", as_span(*node_weight));
    }
    data.loss = NodeLoss{data_or_null(cost), data_or_null(node_weight)};
    require_between("max_iter", max_iter, 1, most_numbers);
    data.inference.method = method_of(inference);
    data.inference.passes.max_iter = max_iter;
    if (max_seconds) {
        require_amounts("max_seconds", std::array{*max_seconds});
        data.inference.passes.max_seconds = *max_seconds;
    }
    new (self) Graph(data);
}

}  // namespace

void bind_graphs(nb::module_& m) {
    nb::class_<Graph, Structure>(m, "Graph")
        .def("__init__", &make_graph, arg("node_offsets").noconvert(), arg("edge_offsets").noconvert(), arg("first").noconvert(), arg("second").noconvert(),
             arg("edge_features").noconvert(), arg("n_labels"), arg("candidates").none().noconvert(), arg("pair_rows").none().noconvert(),
             arg("pair_column").none().noconvert(), arg("pair_coefficient").none().noconvert(), arg("n_pair_columns"), arg("types").none().noconvert(),
             arg("n_types"), arg("truth").none().noconvert(), arg("cost").none().noconvert(), arg("node_weight").none().noconvert(), arg("inference"),
             arg("max_iter"), arg("max_seconds").none(), nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(), nb::keep_alive<1, 5>(), nb::keep_alive<1, 6>(),
             nb::keep_alive<1, 8>(), nb::keep_alive<1, 9>(), nb::keep_alive<1, 10>(), nb::keep_alive<1, 11>(), nb::keep_alive<1, 13>(),
             nb::keep_alive<1, 15>(), nb::keep_alive<1, 16>(), nb::keep_alive<1, 17>())
        .def("take_open", &Graph::take_open)
        .def("limit_passes", [](Graph& self, int64_t most) {
            require(most >= 1, "most must be at least 1.");
            self.limit_passes(most);
        }, arg("most"))
        .def("searches_by_method", [](const Graph& self) {
            std::map<std::string, int64_t> counts;
            for (int k = 0; k < n_graph_methods; ++k)
                if (const int64_t n = self.n_searches(static_cast<GraphMethod>(k))) counts[method_names[k]] = n;
            return counts;
        })
        .def("enumerated", [](const Graph& self) {
            std::vector<int64_t> counts(self.n_examples());
            for (int64_t i = 0; i < self.n_examples(); ++i) counts[i] = self.n_enumerated(i);
            return to_numpy(std::move(counts));
        })
        .def_prop_ro("most_enumerated", [](const Graph&) { return most_enumerated; })
        .def("shortfalls", [](const Graph& self) {
            const auto found = self.shortfalls();
            return to_numpy(std::vector<double>(found.begin(), found.end()));
        });
}
