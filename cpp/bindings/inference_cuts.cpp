// Maximum flow, graph cuts and alpha-expansion for Python. Arrays given are copied or used during the call only.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/checks.hpp"
#include "inference/expansion.hpp"
#include "inference/fusion.hpp"
#include "inference/graph_cut.hpp"
#include "inference/max_flow.hpp"

using namespace maxmargin;
using nb::arg;

namespace {

constexpr int64_t most_nodes = std::numeric_limits<int32_t>::max() - 1;
constexpr int64_t most_edges = (int64_t{1} << 30) - 1;
// Sums of two thousand million numbers of this size are far from infinite.
constexpr double largest_number = 1e100;

std::string found_at(const char* name, size_t place, double found) {
    char number[32];
    std::snprintf(number, sizeof number, "%.6g", found);
    return std::string(name) + "[" + std::to_string(place) + "] is " + number + ": expected ";
}

void require_scores(const char* name, std::span<const double> scores) {
    for (size_t k = 0; k < scores.size(); ++k)
        if (!(std::abs(scores[k]) <= largest_number)) throw std::invalid_argument(found_at(name, k, scores[k]) + "a number between -1e100 and 1e100.");
}

void require_capacities(const char* name, const Array1<double>& capacities, int64_t n) {
    require_length(name, capacities.shape(0), n);
    const std::span<const double> values = as_span(capacities);
    const auto is_bad = [](double value) { return int(!(value >= 0.0)) | int(value > largest_number); };
    // All at once, because this takes as long as solving where little changed; which one only where there is one.
    int any_bad = 0;
    for (const double value : values) any_bad |= is_bad(value);
    if (!any_bad) return;
    const auto k = static_cast<size_t>(std::find_if(values.begin(), values.end(), is_bad) - values.begin());
    throw std::invalid_argument(found_at(name, k, values[k]) + "a capacity between 0 and 1e100.");
}

void require_edges(int64_t n_nodes, const Array1<int32_t>& first, const Array1<int32_t>& second) {
    require_between("number of nodes", n_nodes, 0, most_nodes);
    require_between("number of edges", static_cast<int64_t>(first.shape(0)), 0, most_edges);
    require_length("second", second.shape(0), first.shape(0));
    require_numbers_of("node of first", as_span(first), n_nodes);
    require_numbers_of("node of second", as_span(second), n_nodes);
    for (size_t e = 0; e < first.shape(0); ++e)
        if (first(e) == second(e))
            throw std::invalid_argument("edge " + std::to_string(e) + " joins node " + std::to_string(first(e)) + " to itself: an edge needs two different nodes.");
}

GraphShape checked_shape(const Array1<int64_t>& label_offsets, const Array1<int32_t>& first, const Array1<int32_t>& second) {
    const auto offsets = as_span(label_offsets);
    require(!offsets.empty() && offsets.front() == 0, "label_offsets must begin with 0.");
    for (size_t i = 0; i + 1 < offsets.size(); ++i) {
        if (offsets[i] >= offsets[i + 1]) throw std::invalid_argument("label_offsets must ascend: node " + std::to_string(i) + " has no label.");
        if (offsets[i + 1] - offsets[i] > std::numeric_limits<int32_t>::max())
            throw std::invalid_argument("label_offsets: node " + std::to_string(i) + " has " + std::to_string(offsets[i + 1] - offsets[i]) + " labels, which is too many.");
    }
    const int64_t n_nodes = static_cast<int64_t>(offsets.size()) - 1;
    require_edges(n_nodes, first, second);
    return {n_nodes, label_offsets.data(), static_cast<int64_t>(first.shape(0)), first.data(), second.data()};
}

void require_unary(const GraphShape& shape, const Array1<double>& unary) {
    require_length("unary", unary.shape(0), shape.label_offsets[shape.n_nodes]);
    require_scores("unary", as_span(unary));
}

PairScores checked_pairs(const GraphShape& shape, const Array1<double>& values, const std::optional<Array1<int64_t>>& offsets) {
    if (offsets) {
        require_length("offsets", offsets->shape(0), shape.n_edges);
        for (int64_t e = 0; e < shape.n_edges; ++e) {
            const int64_t rows = shape.n_labels(shape.first[e]), columns = shape.n_labels(shape.second[e]), n = static_cast<int64_t>(values.shape(0));
            // Divided, not multiplied: the table of two nodes with very many labels has no size that a number holds.
            if ((*offsets)(e) < 0 || (*offsets)(e) > n || (n - (*offsets)(e)) / columns < rows)
                throw std::invalid_argument("offsets[" + std::to_string(e) + "] is " + std::to_string((*offsets)(e)) + ": a table of " + std::to_string(rows) + " by " +
                                            std::to_string(columns) + " labels does not fit there into " + std::to_string(n) + " values.");
        }
    } else {
        require_length("values", values.shape(0), shape.n_edges);
    }
    require_scores("values", as_span(values));
    return {values.data(), data_or_null(offsets)};
}

// Solving lets other Python threads run; one that meanwhile calls the same object waits.
template <class Solver>
struct Guarded {
    template <class... Arguments>
    explicit Guarded(Arguments&&... arguments) : solver(std::forward<Arguments>(arguments)...) {}

    Guarded(const Guarded&) = delete;
    Guarded(Guarded&&) = delete;

    template <class Work>
    auto use(Work&& work) {
        return interruptible([&] {
            const std::lock_guard alone(busy);
            return work(solver);
        });
    }

    Solver solver;
    std::mutex busy;
};

using BoundFlow = Guarded<MaxFlow>;
using BoundCut = Guarded<GraphCut>;

// A NumPy array of truth values: vectors have none that could be handed over.
nb::ndarray<nb::numpy, bool> to_numpy_bools(const std::vector<uint8_t>& values) {
    auto* owned = new bool[std::max<size_t>(values.size(), 1)];
    nb::capsule owner(owned, [](void* p) noexcept { delete[] static_cast<bool*>(p); });
    std::copy(values.begin(), values.end(), owned);
    return nb::ndarray<nb::numpy, bool>(owned, {values.size()}, owner);
}

nb::tuple solve_flow(BoundFlow& self) {
    auto [value, sides] = self.use([](MaxFlow& flow) {
        flow.solve();
        std::vector<uint8_t> on_source_side(flow.n_nodes());
        for (int64_t i = 0; i < flow.n_nodes(); ++i) on_source_side[i] = flow.on_source_side(i);
        return std::pair(flow.flow_value(), std::move(on_source_side));
    });
    return nb::make_tuple(value, to_numpy_bools(sides));
}

void bind_max_flow(nb::module_& m) {
    nb::class_<BoundFlow>(m, "MaxFlow", R"(The largest flow from a source to a sink and the smallest cut between them.

Capacities may be changed after a solve, upwards or downwards; the next one starts from the flow found before.)")
        .def(
            "__init__",
            [](BoundFlow* self, int64_t n_nodes, Array1<int32_t> first, Array1<int32_t> second) {
                nb::gil_scoped_release release;
                require_edges(n_nodes, first, second);
                new (self) BoundFlow(n_nodes, as_span(first), as_span(second));
            },
            arg("n_nodes"), arg("first").noconvert(), arg("second").noconvert())
        .def(
            "set_terminals",
            [](BoundFlow& self, Array1<double> source, Array1<double> sink) {
                self.use([&](MaxFlow& flow) {
                    require_capacities("source", source, flow.n_nodes());
                    require_capacities("sink", sink, flow.n_nodes());
                    flow.set_terminals(as_span(source), as_span(sink));
                });
            },
            arg("source").noconvert(), arg("sink").noconvert(), "Capacities of every node, from the source and to the sink.")
        .def(
            "set_edges",
            [](BoundFlow& self, Array1<double> forward, Array1<double> backward) {
                self.use([&](MaxFlow& flow) {
                    require_capacities("forward", forward, flow.n_edges());
                    require_capacities("backward", backward, flow.n_edges());
                    flow.set_edges(as_span(forward), as_span(backward));
                });
            },
            arg("forward").noconvert(), arg("backward").noconvert(), "Capacities of every edge, from first to second and back.")
        .def("forget_flow", [](BoundFlow& self) { self.use([](MaxFlow& flow) { flow.forget_flow(); }); }, "Let the next solve start without a flow.")
        .def("solve", &solve_flow,
             "Return the value of the flow, and for each node whether it is on the source's side of the cut: whether residual arcs lead there from the source.")
        .def("cut_value", [](BoundFlow& self) { return self.use([](MaxFlow& flow) { return flow.cut_value(); }); },
             "The value at the present capacities of the cut that the last solve found.");
}

nb::tuple solve_cut(BoundCut& self) {
    std::vector<int32_t> labels(self.solver.shape().n_nodes);
    const double score = self.use([&](GraphCut& cut) { return cut.solve(labels); });
    return nb::make_tuple(to_numpy(std::move(labels)), score);
}

void bind_graph_cut(nb::module_& m) {
    nb::class_<BoundCut>(m, "GraphCut", R"(The best labelling of a graph with one or two labels at each node whose edges like equal labels.

Scores may be changed after a solve; the next one starts from the flow found before.)")
        .def(
            "__init__",
            [](BoundCut* self, Array1<int64_t> label_offsets, Array1<int32_t> first, Array1<int32_t> second) {
                nb::gil_scoped_release release;
                new (self) BoundCut(checked_shape(label_offsets, first, second));
            },
            arg("label_offsets").noconvert(), arg("first").noconvert(), arg("second").noconvert())
        .def(
            "set_unary_scores",
            [](BoundCut& self, Array1<double> unary) {
                self.use([&](GraphCut& cut) {
                    require_unary(cut.shape(), unary);
                    cut.set_unary_scores(as_span(unary));
                });
            },
            arg("unary").noconvert(), "Scores of all labels, node after node.")
        .def(
            "set_pair_scores",
            [](BoundCut& self, Array1<double> values, std::optional<Array1<int64_t>> offsets) {
                self.use([&](GraphCut& cut) { cut.set_pair_scores(checked_pairs(cut.shape(), values, offsets)); });
            },
            arg("values").noconvert(), arg("offsets").none().noconvert() = nb::none(),
            "A table of each edge, at values[offsets[e]:], or without offsets what equal labels score.")
        .def("forget_flow", [](BoundCut& self) { self.use([](GraphCut& cut) { cut.forget_flow(); }); }, "Let the next solve start without a flow.")
        .def("solve", &solve_cut, "Return the best labels and their score; of equally good labellings the one with the fewest ones.");
}

nb::tuple expand_labels(Array1<int64_t> label_offsets, Array1<int32_t> first, Array1<int32_t> second, Array1<double> unary, Array1<double> values,
                        std::optional<Array1<int64_t>> offsets, std::optional<Array1<int32_t>> start, int64_t max_rounds) {
    std::vector<int32_t> labels;
    const Expanded expanded = interruptible([&] {
        const GraphShape shape = checked_shape(label_offsets, first, second);
        require_unary(shape, unary);
        const PairScores pairs = checked_pairs(shape, values, offsets);
        require_between("max_rounds", max_rounds, 0, std::numeric_limits<int64_t>::max());
        check_expandable(shape, pairs);
        if (start) {
            require_length("start", start->shape(0), shape.n_nodes);
            require_numbers_of("label of start", as_span(*start), shape.n_nodes ? shape.n_labels(0) : 0);
            labels.assign(start->data(), start->data() + start->shape(0));
        } else {
            labels = best_unary_labels(shape, as_span(unary));
        }
        return expand(shape, as_span(unary), pairs, max_rounds, labels);
    });
    return nb::make_tuple(to_numpy(std::move(labels)), expanded.score, expanded.n_moves, expanded.n_rounds);
}

nb::ndarray<nb::numpy, int32_t> mix_labels(Array1<int64_t> label_offsets, Array1<int32_t> first, Array1<int32_t> second, Array1<double> unary, Array1<double> values,
                      std::optional<Array1<int64_t>> offsets, Array1<int32_t> kept, Array1<int32_t> offered) {
    std::vector<int32_t> mixed;
    interruptible([&] {
        const GraphShape shape = checked_shape(label_offsets, first, second);
        require_unary(shape, unary);
        const PairScores pairs = checked_pairs(shape, values, offsets);
        for (const auto& [name, labels] : {std::pair{"kept", &kept}, std::pair{"offered", &offered}}) {
            require_length(name, labels->shape(0), shape.n_nodes);
            for (int64_t i = 0; i < shape.n_nodes; ++i) require_between(name, labels->data()[i], 0, shape.n_labels(i) - 1);
        }
        mixed.resize(shape.n_nodes);
        Fusion(shape).mix(as_span(unary), pairs, as_span(kept), as_span(offered), mixed);
    });
    return to_numpy(std::move(mixed));
}

}  // namespace

void bind_inference_cuts(nb::module_& m) {
    bind_max_flow(m);
    bind_graph_cut(m);
    m.def("expand", &expand_labels, arg("label_offsets").noconvert(), arg("first").noconvert(), arg("second").noconvert(), arg("unary").noconvert(), arg("values").noconvert(),
          arg("offsets").none().noconvert() = nb::none(), arg("start").none().noconvert() = nb::none(), arg("max_rounds") = 1000,
          R"(Return a good labelling by alpha-expansion, its score, the number of moves taken and of rounds.

Starts at the labels given, or at each node's best; ends when a whole round of moves changes nothing.)");
    m.def("mix_labels", &mix_labels, arg("label_offsets").noconvert(), arg("first").noconvert(), arg("second").noconvert(), arg("unary").noconvert(),
          arg("values").noconvert(), arg("offsets").none().noconvert(), arg("kept").noconvert(), arg("offered").noconvert(),
          R"(Return a good mix of two labellings: at each node the label kept or the one offered.

The best one where no edge scores more by its two mixed pairs of labels than by both kept and both offered; never worse than the labels kept.)");
}
