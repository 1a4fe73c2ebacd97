// Labellings of graphs for Python. Arrays are checked here: the core trusts them.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nanobind/stl/string.h>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/checks.hpp"
#include "inference/enumeration.hpp"
#include "inference/forest.hpp"
#include "inference/graph_cut.hpp"
#include "inference/m_best.hpp"
#include "inference/trws.hpp"
#include "scores/kernels.hpp"

using namespace maxmargin;
using nb::arg;

namespace {

using Doubles = Array1<double>;
using Longs = Array1<int64_t>;
using Ints = Array1<int32_t>;

// Sums over 2³¹ nodes and edges stay finite, and so do their multiples.
constexpr double largest_score = 1e200;

void check_scores(const char* name, std::span<const double> scores) {
    for (size_t k = 0; k < scores.size(); ++k)
        if (!(std::abs(scores[k]) <= largest_score))
            throw std::invalid_argument(std::string(name) + " holds " + std::to_string(scores[k]) + " at place " + std::to_string(k) +
                                        ": scores must be finite, and at most 1e200 in magnitude.");
}

GraphShape make_shape(const Longs& label_offsets, const Ints& first, const Ints& second) {
    constexpr int64_t most = std::numeric_limits<int32_t>::max();
    const auto offsets = as_span(label_offsets);
    require(!offsets.empty() && offsets.front() == 0, "label_offsets must begin with 0.");
    require_between("number of nodes", static_cast<int64_t>(offsets.size()) - 1, 0, most);
    for (size_t i = 0; i + 1 < offsets.size(); ++i) {
        require(offsets[i] < offsets[i + 1], "label_offsets must ascend: node " + std::to_string(i) + " has no labels.");
        // Offsets that ascend from 0: their differences do not overflow.
        require(offsets[i + 1] - offsets[i] <= most_labels, "label_offsets give node " + std::to_string(i) + " more than 2³⁰ labels.");
    }
    const auto n_nodes = static_cast<int64_t>(offsets.size()) - 1;
    require_length("second", second.shape(0), static_cast<int64_t>(first.shape(0)));
    require_numbers_of("first node", as_span(first), n_nodes);
    require_numbers_of("second node", as_span(second), n_nodes);
    for (size_t e = 0; e < first.shape(0); ++e)
        if (first(e) == second(e))
            throw std::invalid_argument("edge " + std::to_string(e) + " joins node " + std::to_string(first(e)) + " to itself: expected two different nodes.");
    return {n_nodes, offsets.data(), static_cast<int64_t>(first.shape(0)), first.data(), second.data()};
}

void check_unary(const GraphShape& shape, const Doubles& unary) {
    require_length("unary", unary.shape(0), shape.label_offsets[shape.n_nodes]);
    check_scores("unary", as_span(unary));
}

PairScores make_pairs(const GraphShape& shape, const Doubles& values, const std::optional<Longs>& table_offsets) {
    check_scores("pair_values", as_span(values));
    if (!table_offsets) {
        require_length("pair_values", values.shape(0), shape.n_edges);
        return {values.data(), nullptr};
    }
    require_length("table_offsets", table_offsets->shape(0), shape.n_edges);
    const auto n_values = static_cast<int64_t>(values.shape(0));
    for (int64_t e = 0; e < shape.n_edges; ++e) {
        const int64_t offset = (*table_offsets)(e), rows = shape.n_labels(shape.first[e]), columns = shape.n_labels(shape.second[e]);
        require(offset >= 0 && offset <= n_values && rows * columns <= n_values - offset,
                "table of edge " + std::to_string(e) + " begins at " + std::to_string(offset) + " and has " + std::to_string(rows) + " × " +
                    std::to_string(columns) + " entries, but pair_values has " + std::to_string(n_values) + ".");
    }
    return {values.data(), table_offsets->data()};
}

std::vector<int32_t> make_order(const std::optional<Ints>& order, int64_t n_nodes) {
    if (!order) return {};
    require_length("order", order->shape(0), n_nodes);
    require_numbers_of("node of order", as_span(*order), n_nodes);
    std::vector<int32_t> nodes(order->data(), order->data() + n_nodes);
    std::vector<char> is_seen(n_nodes, 0);
    for (const int32_t node : nodes) {
        require(!is_seen[node], "order names node " + std::to_string(node) + " twice: expected every node once.");
        is_seen[node] = 1;
    }
    return nodes;
}

TreeReweightedOptions make_options(int64_t max_iter, double relative_tolerance, double absolute_tolerance, double stall, std::optional<double> max_seconds) {
    require_between("max_iter", max_iter, 1, std::numeric_limits<int64_t>::max());
    const double amounts[] = {relative_tolerance, absolute_tolerance, stall, max_seconds.value_or(0.0)};
    require_amounts("relative_tolerance, absolute_tolerance, stall and max_seconds", amounts);
    TreeReweightedOptions options;
    options.max_iter = max_iter;
    options.relative_tolerance = relative_tolerance;
    options.absolute_tolerance = absolute_tolerance;
    options.stall = stall;
    if (max_seconds) options.max_seconds = *max_seconds;
    return options;
}

void require_few_labellings(const GraphShape& shape) {
    require(count_enumerated(shape) <= most_enumerated, "the graph has too many labellings to enumerate: those of its first node, its first two nodes, …, all nodes are more than " +
                                                            std::to_string(most_enumerated) + ". Use TreeReweighted.");
}

// The way that is asked for, or the cheapest exact one, or TRW-S.
std::unique_ptr<LabellingSearch> make_search(const std::string& method, const GraphShape& shape, const PairScores& pairs, const TreeReweightedOptions& options) {
    const bool is_auto = method == "auto";
    require(is_auto || method == "forest" || method == "cut" || method == "enumeration" || method == "trws",
            "method must be 'auto', 'forest', 'cut', 'enumeration' or 'trws', found '" + method + "'.");
    if (is_auto || method == "forest") {
        auto forest = std::make_unique<ForestSearch>(shape, pairs);
        if (forest->is_forest()) return forest;
        require(is_auto, "method 'forest' needs a graph without cycles; this one has a cycle. Use 'enumeration' or 'trws'.");
    }
    if (method == "cut") return std::make_unique<GraphCutSearch>(shape, pairs);
    if (method == "enumeration") require_few_labellings(shape);
    // Under 'auto' a search should take a millisecond at most: many may be needed.
    if (method == "enumeration" || (is_auto && count_enumerated(shape) <= (1 << 17))) return std::make_unique<EnumerationSearch>(shape, pairs);
    auto passes = std::make_shared<TreeReweighted>(shape, std::vector<int32_t>{});
    passes->set_pairs(pairs);
    return std::make_unique<TreeReweightedSearch>(std::move(passes), options);
}

const char* name_of(TreeReweightedStop stop) {
    switch (stop) {
        case TreeReweightedStop::closed: return "closed";
        case TreeReweightedStop::stalled: return "stalled";
        case TreeReweightedStop::max_iter: return "max_iter";
        case TreeReweightedStop::max_seconds: return "max_seconds";
        case TreeReweightedStop::below_floor: return "below_floor";
    }
    return "";
}

// Holds the pair scores, which the solver does not copy.
struct BoundTreeReweighted {
    TreeReweighted solver;
    std::optional<Doubles> pair_values;
    bool has_unary = false, has_run = false;  // with the scores as they are
    std::atomic<bool> is_running{false};

    BoundTreeReweighted(const GraphShape& shape, std::vector<int32_t> order) : solver(shape, std::move(order)) {}
};

// Runs let other Python threads on: they must not change what is in use.
class Use {
   public:
    explicit Use(BoundTreeReweighted& bound) : bound_(bound) {
        if (bound.is_running.exchange(true)) throw std::runtime_error("this TreeReweighted is running in another thread.");
    }
    ~Use() { bound_.is_running = false; }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    BoundTreeReweighted& bound_;
};

struct RunResult {
    TreeReweightedResult result;
    std::vector<int32_t> labels;
};

nb::tuple as_tuple(Labellings&& found, int64_t n_nodes) {
    const size_t n = found.scores.size();
    return nb::make_tuple(to_numpy(std::move(found.labels), {n, static_cast<size_t>(n_nodes)}), to_numpy(std::move(found.scores)), found.is_exact);
}

template <class Search>
nb::tuple best_by(Search& search, const GraphShape& shape, const Doubles& unary) {
    std::vector<int32_t> labels(shape.n_nodes);
    const Found found = interruptible([&] { return search.best(unary.data(), labels.data()); });
    return nb::make_tuple(to_numpy(std::move(labels)), found.score);
}

void bind_tree_reweighted(nb::module_& m) {
    nb::class_<RunResult>(m, "TreeReweightedResult", "What one run of TreeReweighted reached: score ≤ best score ≤ bound.")
        .def_prop_ro("labels", [](const RunResult& r) { return to_numpy(std::vector<int32_t>(r.labels)); }, nb::rv_policy::move, "The best labelling seen.")
        .def_prop_ro("score", [](const RunResult& r) { return r.result.score; }, "Of the labels.")
        .def_prop_ro("bound", [](const RunResult& r) { return r.result.bound; })
        .def_prop_ro("is_closed", [](const RunResult& r) { return r.result.stop == TreeReweightedStop::closed; }, "Score and bound agree up to the tolerances.")
        .def_prop_ro("status", [](const RunResult& r) { return name_of(r.result.stop); }, "'closed', 'stalled', 'max_iter', 'max_seconds' or 'below_floor'.")
        .def_prop_ro("n_iter", [](const RunResult& r) { return r.result.bounds.size(); })
        .def_prop_ro("bounds", [](const RunResult& r) { return to_numpy(std::vector<double>(r.result.bounds)); }, nb::rv_policy::move, "After each iteration.");

    nb::class_<BoundTreeReweighted>(m, "TreeReweighted", R"(Sequential tree-reweighted message passing (TRW-S) on one graph.

    max_y  Σ_i unary_i(y_i) + Σ_e pair_e(y_first(e), y_second(e))

Node i has label_offsets[i + 1] − label_offsets[i] labels. Messages are kept between runs: set other scores and run again for a warm start.)")
        .def(
            "__init__",
            [](BoundTreeReweighted* self, Longs label_offsets, Ints first, Ints second, std::optional<Ints> order) {
                const GraphShape shape = make_shape(label_offsets, first, second);
                new (self) BoundTreeReweighted(shape, make_order(order, shape.n_nodes));
            },
            arg("label_offsets").noconvert(), arg("first").noconvert(), arg("second").noconvert(), arg("order").none().noconvert() = nb::none())
        .def(
            "set_unary",
            [](BoundTreeReweighted& self, Doubles unary) {
                const Use use(self);
                check_unary(self.solver.shape(), unary);
                self.solver.set_unary(unary.data());
                self.has_unary = true;
                self.has_run = false;
            },
            arg("unary").noconvert(), "Scores of the labels of all nodes, one node after the other; copied.")
        .def(
            "set_pairs",
            [](BoundTreeReweighted& self, Doubles pair_values, std::optional<Longs> table_offsets) {
                const Use use(self);
                self.solver.set_pairs(make_pairs(self.solver.shape(), pair_values, table_offsets));
                self.pair_values = std::move(pair_values);
                self.has_run = false;
            },
            arg("pair_values").noconvert(), arg("table_offsets").none().noconvert() = nb::none(),
            "Tables (labels of first × labels of second, row by row) that begin at table_offsets, or without these one score per edge for "
            "equal labels. The values are not copied.")
        .def(
            "reset_messages",
            [](BoundTreeReweighted& self) {
                const Use use(self);
                self.solver.reset_messages();
                self.has_run = false;
            },
            "Forget the messages: the next run starts cold.")
        .def(
            "run",
            [](BoundTreeReweighted& self, int64_t max_iter, double relative_tolerance, double absolute_tolerance, double stall, std::optional<double> max_seconds,
               std::optional<double> floor) {
                const Use use(self);
                require(self.has_unary && self.pair_values, "scores are missing: call set_unary and set_pairs before run.");
                auto options = make_options(max_iter, relative_tolerance, absolute_tolerance, stall, max_seconds);
                self.has_run = false;
                require(!floor || !std::isnan(*floor), "floor is not a number: expected one, or None.");
                if (floor) options.floor = *floor;
                auto result = interruptible([&] { return self.solver.run(options); });
                self.has_run = true;
                return RunResult{std::move(result), self.solver.labels()};
            },
            arg("max_iter") = 1000, arg("relative_tolerance") = 1e-9, arg("absolute_tolerance") = 1e-9, arg("stall") = 1e-3,
            arg("max_seconds").none() = nb::none(), arg("floor").none() = nb::none(),
            "Iterate until bound − score ≤ absolute_tolerance · min(1, the largest score) + relative_tolerance · max(|bound|, |score|), or ten "
            "iterations lowered the bound by less than stall · (bound − score), or time is up, or the bound is not above the floor; at least one "
            "iteration is made.")
        .def(
            "bound_max_marginals",
            [](BoundTreeReweighted& self) {
                const Use use(self);
                require(self.has_run, "no run with these scores: call run before bound_max_marginals.");
                std::vector<double> bounds(self.solver.shape().label_offsets[self.solver.shape().n_nodes]);
                self.has_run = false;
                interruptible([&] { self.solver.bound_max_marginals(bounds.data()); });
                self.has_run = true;
                return to_numpy(std::move(bounds));
            },
            "For each label of each node a number that no labelling with it scores more than, by one more iteration.");
}

void bind_exact(nb::module_& m) {
    m.def(
        "best_in_forest",
        [](Longs label_offsets, Ints first, Ints second, Doubles unary, Doubles pair_values, std::optional<Longs> table_offsets) {
            const GraphShape shape = make_shape(label_offsets, first, second);
            check_unary(shape, unary);
            ForestSearch search(shape, make_pairs(shape, pair_values, table_offsets));
            require(search.is_forest(), "the graph has a cycle: expected a forest. Use TreeReweighted, or best_by_enumeration for small graphs.");
            return best_by(search, shape, unary);
        },
        arg("label_offsets").noconvert(), arg("first").noconvert(), arg("second").noconvert(), arg("unary").noconvert(), arg("pair_values").noconvert(),
        arg("table_offsets").none().noconvert() = nb::none(), "The best labelling of a graph without cycles, and its score. Parallel edges make no cycle.");
    m.def(
        "best_by_enumeration",
        [](Longs label_offsets, Ints first, Ints second, Doubles unary, Doubles pair_values, std::optional<Longs> table_offsets) {
            const GraphShape shape = make_shape(label_offsets, first, second);
            check_unary(shape, unary);
            require_few_labellings(shape);
            EnumerationSearch search(shape, make_pairs(shape, pair_values, table_offsets));
            return best_by(search, shape, unary);
        },
        arg("label_offsets").noconvert(), arg("first").noconvert(), arg("second").noconvert(), arg("unary").noconvert(), arg("pair_values").noconvert(),
        arg("table_offsets").none().noconvert() = nb::none(), "The best labelling of a small graph, and its score: 24 nodes of two labels are the most.");
}

void bind_several(nb::module_& m) {
    m.def(
        "m_best_labellings",
        [](Longs label_offsets, Ints first, Ints second, Doubles unary, Doubles pair_values, std::optional<Longs> table_offsets, int64_t n_best,
           const std::string& method, int64_t max_iter, double relative_tolerance, double absolute_tolerance, double stall, std::optional<double> max_seconds) {
            const GraphShape shape = make_shape(label_offsets, first, second);
            check_unary(shape, unary);
            require_between("n_best", n_best, 1, std::numeric_limits<int32_t>::max());
            const auto search = make_search(method, shape, make_pairs(shape, pair_values, table_offsets),
                                            make_options(max_iter, relative_tolerance, absolute_tolerance, stall, max_seconds));
            return as_tuple(interruptible([&] { return m_best_labellings(shape, unary.data(), *search, n_best); }), shape.n_nodes);
        },
        arg("label_offsets").noconvert(), arg("first").noconvert(), arg("second").noconvert(), arg("unary").noconvert(), arg("pair_values").noconvert(),
        arg("table_offsets").none().noconvert(), arg("n_best"), arg("method") = "auto", arg("max_iter") = 1000, arg("relative_tolerance") = 1e-9,
        arg("absolute_tolerance") = 1e-9, arg("stall") = 1e-3, arg("max_seconds").none() = nb::none(),
        "The n_best labellings, best first (fewer where there are no more), their scores, and whether every search was exact. The "
        "options are those of TreeReweighted.run, per search.");
}

}  // namespace

void bind_message_passing(nb::module_& m) {
    bind_tree_reweighted(m);
    bind_exact(m);
    bind_several(m);
}
