// Cuts, the oracle cache and working sets for Python.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <limits>
#include <memory>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/checks.hpp"
#include "scores/row_columns.hpp"
#include "solvers/cut_set.hpp"
#include "solvers/float_vectors.hpp"
#include "solvers/plane_cache.hpp"
#include "solvers/proximal_step.hpp"
#include "solvers/row_blocks.hpp"
#include "solvers/working_sets.hpp"

using namespace maxmargin;
using nb::arg;

namespace {

using OptionalDoubles = std::optional<Array1<double>>;
using OptionalFloats = std::optional<Array1<float>>;

using Released = nb::call_guard<nb::gil_scoped_release>;

void check_weights(size_t length, const PlaneSpace& space) { require_length("weights", length, space.n_weights()); }

void check_sample_weight(const OptionalDoubles& sample_weight, const PlaneSpace& space) {
    if (sample_weight) require_length("sample_weight", sample_weight->shape(0), space.n_examples());
}

void bind_cuts(nb::module_& m) {
    nb::class_<CutSet>(m, "CutSet")
        .def(
            "__init__",
            [](CutSet* self, int64_t n_weights) {
                require(n_weights >= 0, "n_weights must not be negative.");
                new (self) CutSet(n_weights);
            },
            arg("n_weights"))
        .def("__len__", &CutSet::size)
        .def("copy", [](const CutSet& self) { return CutSet(self); }, Released())
        .def(
            "assemble",
            [](CutSet& self, const PlaneSpace& space, const PlaneBatch& planes, OptionalDoubles sample_weight) {
                check_sample_weight(sample_weight, space);
                require_length("weights of the space", space.n_weights(), self.n_weights());
                space.check(planes);
                interruptible([&] { self.assemble(space, planes, data_or_null(sample_weight)); });
            },
            arg("space"), arg("planes"), arg("sample_weight").none())
        .def(
            "load",
            [](CutSet& self, double loss, Array1<double> sum) {
                require_length("sum", sum.shape(0), self.n_weights());
                nb::gil_scoped_release release;
                self.load(loss, as_span(sum));
            },
            arg("loss"), arg("sum"))
        .def_prop_ro("pending_loss", &CutSet::pending_loss)
        .def(
            "pending_dot",
            [](const CutSet& self, Array1<double> w) {
                require_length("weights", w.shape(0), self.n_weights());
                nb::gil_scoped_release release;
                return self.pending_dot(w.data());
            },
            arg("weights").noconvert())
        .def(
            "add_pending",
            [](const CutSet& self, double a, Mutable1<double> w) {
                require_length("weights", w.shape(0), self.n_weights());
                nb::gil_scoped_release release;
                self.add_pending(a, w.data());
            },
            arg("a"), arg("weights").noconvert())
        .def(
            "pending_at",
            [](const CutSet& self, Array1<int64_t> indices) {
                require_numbers_of("weight", as_span(indices), self.n_weights());
                std::vector<double> out(indices.shape(0));
                for (size_t j = 0; j < out.size(); ++j) out[j] = self.pending_at(indices(j));
                return to_numpy(std::move(out));
            },
            arg("indices"))
        .def(
            "keep",
            [](CutSet& self, int n_threads) {
                std::vector<double> row;
                {
                    nb::gil_scoped_release release;
                    row = self.keep(workers(n_threads));
                }
                return to_numpy(std::move(row));
            },
            arg("n_threads"))
        .def(
            "add",
            [](const CutSet& self, Array1<double> coefficients, Mutable1<double> w, std::optional<Mutable1<float>> rounded, int n_threads) {
                require_length("coefficients", coefficients.shape(0), self.size());
                require_length("weights", w.shape(0), self.n_weights());
                if (rounded) require_length("rounded weights", rounded->shape(0), self.n_weights());
                nb::gil_scoped_release release;
                return self.add(as_span(coefficients), w.data(), data_or_null(rounded), workers(n_threads));
            },
            arg("coefficients"), arg("weights").noconvert(), arg("rounded").none().noconvert(), arg("n_threads"))
        .def(
            "remove",
            [](CutSet& self, Array1<int64_t> cuts) {
                require_numbers_of("cut", as_span(cuts), self.size());
                for (size_t k = 1; k < cuts.shape(0); ++k) require(cuts(k - 1) < cuts(k), "cuts to remove must ascend.");
                nb::gil_scoped_release release;
                self.remove(as_span(cuts));
            },
            arg("cuts"));
}

void bind_cache(nb::module_& m) {
    nb::class_<PlaneCache>(m, "PlaneCache")
        .def(
            "__init__",
            [](PlaneCache* self, std::shared_ptr<PlaneSpace> space, int capacity, bool keeps_vectors) {
                require_between("capacity", capacity, 1, std::numeric_limits<int>::max());
                new (self) PlaneCache(space, capacity, keeps_vectors);
            },
            arg("space"), arg("capacity"), arg("keeps_vectors") = false, nb::keep_alive<1, 2>())
        .def_prop_ro("keeps_vectors", &PlaneCache::keeps_vectors)
        .def_prop_ro("n_planes", &PlaneCache::n_planes)
        .def("planes", &PlaneCache::planes, Released())
        .def(
            "improve",
            [](const PlaneCache& self, PlaneBatch& found, Array1<int64_t> searched, Array1<double> w) {
                self.space().check(found);
                require_numbers_of("example", as_span(searched), self.space().n_examples());
                check_weights(w.shape(0), self.space());
                const std::vector<int32_t> ids(searched.data(), searched.data() + searched.shape(0));
                return to_numpy(interruptible([&] { return self.improve(found, ids, w.data()); }));
            },
            arg("found"), arg("searched"), arg("weights").noconvert())
        .def(
            "insert",
            [](PlaneCache& self, const PlaneBatch& planes) {
                self.space().check(planes);
                interruptible([&] { self.insert(planes); });
            },
            arg("planes"))
        .def(
            "evaluate",
            [](PlaneCache& self, Array1<double> w, OptionalFloats rounded, int n_threads) {
                check_weights(w.shape(0), self.space());
                if (rounded) require_length("rounded weights", rounded->shape(0), self.space().n_weights());
                nb::gil_scoped_release release;
                self.evaluate({w.data(), data_or_null(rounded)}, workers(n_threads));
            },
            arg("weights").noconvert(), arg("rounded").none().noconvert(), arg("n_threads"))
        .def(
            "evaluate_anchor",
            [](PlaneCache& self, Array1<float> anchor, int n_threads) {
                require_length("anchor", anchor.shape(0), self.space().n_weights());
                nb::gil_scoped_release release;
                self.evaluate_anchor({nullptr, anchor.data()}, workers(n_threads));
            },
            arg("anchor"), arg("n_threads"))
        .def("drop_unused", &PlaneCache::drop_unused, arg("age"), Released())
        .def("move_anchor", &PlaneCache::move_anchor, arg("t"), Released())
        .def("best", [](PlaneCache& self, double t) { return interruptible([&] { return self.best(t); }); }, arg("t") = 1.0)
        .def(
            "add_best",
            [](PlaneCache& self, double t, OptionalDoubles sample_weight, Mutable1<double> sum) {
                require(self.keeps_vectors(), "add_best needs a cache that keeps vectors.");
                check_sample_weight(sample_weight, self.space());
                check_weights(sum.shape(0), self.space());
                return interruptible([&] { return self.add_best(t, data_or_null(sample_weight), sum.data()); });
            },
            arg("t"), arg("sample_weight").none(), arg("sum").noconvert())
        .def(
            "slope",
            [](const PlaneCache& self, double t, OptionalDoubles sample_weight) {
                check_sample_weight(sample_weight, self.space());
                return interruptible([&] { return self.slope(t, data_or_null(sample_weight)); });
            },
            arg("t"), arg("sample_weight").none());
}

MovingWeights moving(const PlaneSpace& space, const Mutable1<double>& w, const std::optional<Mutable1<float>>& rounded) {
    check_weights(w.shape(0), space);
    require(!rounded || space.has_vectors(), "scores in place of weights move in double.");
    if (rounded) require_length("rounded weights", rounded->shape(0), space.n_weights());
    return {w.data(), data_or_null(rounded)};
}

void bind_rule(nb::module_& m) {
    nb::class_<WorkingSets::Rule>(m, "Rule")
        .def(
            "__init__",
            [](WorkingSets::Rule* self, const std::string& step, double insert_above, double solve_above, double solve_to, int64_t max_planes,
               bool drops_empty, uint64_t seed, bool searches, double search_work, int64_t search_batch,
               std::optional<int64_t> patience, double relaxation) {
                using Step = WorkingSets::Step;
                require(step == "exact" || step == "pairs" || step == "coordinates", "step must be 'exact', 'pairs' or 'coordinates', found '" + step + "'.");
                require(max_planes >= 1, "max_planes must be at least 1.");
                require(search_batch >= 1, "search_batch must be at least 1.");
                require(relaxation >= 1.0 && relaxation < 2.0 && (relaxation == 1.0 || step != "coordinates"),
                        "relaxation must be at least 1 and less than 2, and 1 for coordinates.");
                new (self) WorkingSets::Rule{step == "exact" ? Step::exact : step == "pairs" ? Step::pairs : Step::coordinates, insert_above,
                                             solve_above, solve_to, static_cast<size_t>(max_planes), drops_empty, seed, searches, search_work, search_batch, patience.value_or(std::numeric_limits<int64_t>::max()), relaxation};
            },
            arg("step"), nb::kw_only(), arg("insert_above") = 0.0, arg("solve_above") = 0.0, arg("solve_to") = 0.0,
            arg("max_planes") = int64_t{1} << 30, arg("drops_empty") = false, arg("seed") = 0, arg("searches") = true, arg("search_work") = 0.0, arg("search_batch") = 1, arg("patience").none() = nb::none(), arg("relaxation") = 1.0);
}

void bind_working_sets(nb::module_& m) {
    bind_rule(m);
    nb::class_<WorkingSets::Sweep>(m, "Sweep")
        .def_ro("gap", &WorkingSets::Sweep::gap)
        .def_ro("passed_over", &WorkingSets::Sweep::passed_over)
        .def_ro("gain", &WorkingSets::Sweep::gain)
        .def_ro("violation", &WorkingSets::Sweep::violation)
        .def_ro("steps", &WorkingSets::Sweep::steps)
        .def_ro("added", &WorkingSets::Sweep::added)
        .def_ro("dropped", &WorkingSets::Sweep::dropped)
        .def_ro("visits", &WorkingSets::Sweep::visits)
        .def_ro("work", &WorkingSets::Sweep::work)
        .def_ro("moves", &WorkingSets::Sweep::moves)
        .def_prop_ro("moved", [](const WorkingSets::Sweep& self) { return to_numpy(std::vector<int64_t>(self.moved)); }, nb::rv_policy::move);
    nb::class_<WorkingSets>(m, "WorkingSets")
        .def(
            "__init__",
            [](WorkingSets* self, std::shared_ptr<PlaneSpace> space, Array1<double> budgets, bool squared, Array1<int64_t> nonnegative, bool by_components) {
                require(!by_components || (space->has_components() && !squared), "by_components needs outputs that combine, and the hinge.");
                require_length("budgets", budgets.shape(0), space->n_examples());
                require_amounts("budgets", as_span(budgets));
                require_numbers_of("non-negative weight", as_span(nonnegative), space->n_weights());
                require(nonnegative.shape(0) == 0 || space->has_vectors(), "with scores in place of weights there is none to bound.");
                const auto C = as_span(budgets);
                const auto J = as_span(nonnegative);
                new (self) WorkingSets(space, {C.begin(), C.end()}, squared, {J.begin(), J.end()}, by_components);
            },
            arg("space"), arg("budgets"), arg("squared"), arg("nonnegative"), arg("by_components") = false, nb::keep_alive<1, 2>())
        .def_prop_ro("n_planes", &WorkingSets::n_planes)
        .def_prop_ro("n_blocks", &WorkingSets::n_blocks)
        .def("planes", &WorkingSets::planes, Released())
        .def_prop_ro("n_active", &WorkingSets::n_active)
        .def("carriers", [](const WorkingSets& self) {
            std::vector<int64_t> examples = self.carriers();
            const size_t n = examples.size();
            return to_numpy(std::move(examples), {n});
        })
        .def(
            "insert",
            [](WorkingSets& self, const PlaneBatch& planes, Array1<double> w, double epsilon) {
                self.space().check(planes);
                check_weights(w.shape(0), self.space());
                return interruptible([&] { return self.insert(planes, w.data(), epsilon); });
            },
            arg("planes"), arg("weights").noconvert(), arg("epsilon"))
        .def(
            "start",
            [](WorkingSets& self, const PlaneBatch& planes, Mutable1<double> w) {
                self.space().check(planes);
                require(planes.has_alpha(), "planes to start from need their α.");
                check_weights(w.shape(0), self.space());
                interruptible([&] { self.start(planes, w.data()); });
            },
            arg("planes"), arg("weights").noconvert())
        .def(
            "sweep",
            [](WorkingSets& self, Array1<int64_t> order, const WorkingSets::Rule& rule, Mutable1<double> w, std::optional<Mutable1<float>> rounded, int n_threads) {
                require_numbers_of("example", as_span(order), self.space().n_examples());
                const MovingWeights weights = moving(self.space(), w, rounded);
                nb::gil_scoped_release release;
                return self.sweep(as_span(order), rule, weights, workers(n_threads));
            },
            arg("order"), arg("rule"), arg("weights").noconvert(), arg("rounded").none().noconvert() = nb::none(), arg("n_threads") = 1)
        .def(
            "visit",
            [](WorkingSets& self, Oracle& oracle, Array1<int64_t> order, int64_t batch_size, const WorkingSets::Rule& rule, Mutable1<double> w,
               std::optional<Mutable1<float>> rounded, int n_threads) {
                require_numbers_of("example", as_span(order), self.space().n_examples());
                require(batch_size >= 1, "batch_size must be at least 1.");
                const MovingWeights weights = moving(self.space(), w, rounded);
                nb::gil_scoped_release release;
                return self.pass(oracle, as_span(order), batch_size, rule, weights, workers(n_threads));
            },
            arg("oracle"), arg("order"), arg("batch_size"), arg("rule"), arg("weights").noconvert(), arg("rounded").none().noconvert() = nb::none(), arg("n_threads") = 1)
        .def(
            "together",
            [](WorkingSets& self) {
                require(self.space().has_vectors(), "planes are moved together by their vectors.");
                return interruptible([&] { return std::make_unique<ProximalStep>(self.joint(), self.is_squared()); });
            },
            nb::keep_alive<0, 1>())
        .def(
            "slacks",
            [](const WorkingSets& self, Array1<int64_t> ids, Array1<double> w) {
                require_numbers_of("example", as_span(ids), self.space().n_examples());
                check_weights(w.shape(0), self.space());
                return to_numpy(interruptible([&] { return self.slacks(as_span(ids), w.data()); }));
            },
            arg("ids"), arg("weights").noconvert())
        .def(
            "exceeding",
            [](const WorkingSets& self, Array1<int64_t> ids, Array1<double> values, Array1<double> w) {
                require_numbers_of("example", as_span(ids), self.space().n_examples());
                require_length("values", values.shape(0), static_cast<int64_t>(ids.shape(0)));
                check_weights(w.shape(0), self.space());
                return to_numpy(interruptible([&] { return self.exceeding(as_span(ids), as_span(values), w.data()); }));
            },
            arg("ids"), arg("values"), arg("weights").noconvert())
        .def(
            "rescale",
            [](WorkingSets& self, Array1<double> budgets, Mutable1<double> w) {
                const auto C = as_span(budgets), old = self.budgets();
                require_length("budgets", budgets.shape(0), self.space().n_examples());
                require_amounts("budgets", C);
                for (size_t i = 0; i < C.size(); ++i) require((C[i] > 0.0) == (old[i] > 0.0), "budgets must be 0 where they were.");
                check_weights(w.shape(0), self.space());
                return interruptible([&] { return self.rescale({C.begin(), C.end()}, w.data()); });
            },
            arg("budgets"), arg("weights").noconvert())
        .def("linear_part", &WorkingSets::linear_part, Released())
        .def(
            "weights",
            [](WorkingSets& self, Mutable1<double> w) {
                check_weights(w.shape(0), self.space());
                interruptible([&] { self.weights(w.data()); });
            },
            arg("weights").noconvert())
        .def(
            "sum",
            [](const WorkingSets& self, Mutable1<double> w) {
                check_weights(w.shape(0), self.space());
                interruptible([&] { self.sum(w.data()); });
            },
            arg("weights").noconvert())
        .def(
            "coefficients",
            [](const WorkingSets& self, Mutable1<double> out) {
                check_weights(out.shape(0), self.space());
                interruptible([&] { self.coefficients(out.data()); });
            },
            arg("out").noconvert())
        .def("prune", [](WorkingSets& self, int64_t prune_after) { return interruptible([&] { return self.prune(prune_after); }); }, arg("prune_after"));
}

const std::shared_ptr<LinearSpace>& with_rows(const std::shared_ptr<LinearSpace>& space) {
    require(space->structure().row_labels().has_value(), "RowBlocks needs true labels, one for each row.");
    return space;
}

void bind_row_blocks(nb::module_& m) {
    nb::class_<RowBlocks::Sweep>(m, "RowSweep")
        .def_ro("gap", &RowBlocks::Sweep::gap)
        .def_ro("gain", &RowBlocks::Sweep::gain)
        .def_ro("visits", &RowBlocks::Sweep::visits)
        .def_ro("moves", &RowBlocks::Sweep::moves);
    nb::class_<RowBlocks>(m, "RowBlocks")
        .def(
            "__init__",
            [](RowBlocks* self, std::shared_ptr<LinearSpace> space, Array1<double> budgets, bool squared, std::shared_ptr<RowColumns> columns) {
                with_rows(space);
                require_length("budgets", budgets.shape(0), space->n_examples());
                require_amounts("budgets", as_span(budgets));
                const auto C = as_span(budgets);
                if (columns) {
                    require_length("columns", columns->diagonal().size(), space->n_examples());
                    require(space->features().names_rows(), "with columns of a kernel the features must name the rows.");
                }
                new (self) RowBlocks(space, {C.begin(), C.end()}, squared, std::move(columns));
            },
            arg("space"), arg("budgets"), arg("squared"), arg("columns").none() = nb::none(), nb::keep_alive<1, 2>(), nb::keep_alive<1, 5>())
        .def_prop_ro("n_active", &RowBlocks::n_active)
        .def_prop_ro("n_planes", &RowBlocks::n_planes)
        .def(
            "evaluate",
            [](RowBlocks& self, Array1<double> w, OptionalFloats rounded, int n_threads) {
                check_weights(w.shape(0), self.space());
                if (rounded) require_length("rounded weights", rounded->shape(0), self.space().n_weights());
                nb::gil_scoped_release release;
                return self.evaluate({w.data(), data_or_null(rounded)}, workers(n_threads));
            },
            arg("weights").noconvert(), arg("rounded").none().noconvert(), arg("n_threads"))
        .def("activate", [](RowBlocks& self, double tolerance) { self.activate(tolerance); }, arg("tolerance"), Released())
        .def(
            "sweep",
            [](RowBlocks& self, double tolerance, uint64_t seed, Mutable1<double> w, std::optional<Mutable1<float>> rounded, double enough) {
                const MovingWeights weights = moving(self.space(), w, rounded);
                require(!rounded || !self.has_columns(), "with columns of a kernel only weights in double are moved.");
                nb::gil_scoped_release release;
                return self.sweep(tolerance, enough, seed, weights, workers(1));
            },
            arg("tolerance"), arg("seed"), arg("weights").noconvert(), arg("rounded").none().noconvert() = nb::none(), arg("enough") = 0.0)
        .def(
            "rescale",
            [](RowBlocks& self, double ratio, double norm2) {
                require(ratio > 0.0 && std::isfinite(ratio), "ratio must be positive.");
                require(norm2 >= 0.0, "norm2 must not be negative.");
                return interruptible([&] { return self.rescale(ratio, norm2); });
            },
            arg("ratio"), arg("norm2"))
        .def("linear_part", [](const RowBlocks& self) { return interruptible([&] { return self.linear_part(); }); })
        .def(
            "weights",
            [](const RowBlocks& self, Mutable1<double> w) {
                check_weights(w.shape(0), self.space());
                interruptible([&] { self.weights(w.data()); });
            },
            arg("weights").noconvert())
        .def(
            "start",
            [](RowBlocks& self, const PlaneBatch& planes, bool all_alike) {
                self.space().check(planes);
                require(planes.has_alpha(), "planes to start from need their α.");
                return self.start(planes, all_alike);
            },
            arg("planes"), arg("all_alike"))
        .def(
            "together",
            [](RowBlocks& self) {
                require(!self.has_columns(), "rows cannot be moved together with columns of a kernel.");
                return interruptible([&] { return std::make_unique<ProximalStep>(self.joint(), self.is_squared()); });
            },
            nb::keep_alive<0, 1>())
        .def("planes", [](const RowBlocks& self) { return interruptible([&] { return self.planes(); }); });
}

template <class Scalar>
void bind_mix(nb::module_& m) {
    m.def(
        "mix",
        [](Mutable1<Scalar> a, Array1<Scalar> b, double t) {
            require_length("b", b.shape(0), static_cast<int64_t>(a.shape(0)));
            nb::gil_scoped_release release;
            mix(a.data(), b.data(), t, a.shape(0));
        },
        arg("a").noconvert(), arg("b").noconvert(), arg("t"));
}

}  // namespace

void bind_solvers(nb::module_& m) {
    m.def(
        "dot_float",
        [](Array1<float> a, Array1<float> b) {
            require_length("b", b.shape(0), static_cast<int64_t>(a.shape(0)));
            nb::gil_scoped_release release;
            return dot(a.data(), b.data(), a.shape(0));
        },
        arg("a"), arg("b"));
    bind_mix<float>(m);
    bind_mix<double>(m);
    bind_cuts(m);
    bind_cache(m);
    bind_working_sets(m);
    bind_row_blocks(m);
}
