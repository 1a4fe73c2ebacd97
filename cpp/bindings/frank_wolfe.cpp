// Block-coordinate Frank-Wolfe for Python.
#include <nanobind/stl/shared_ptr.h>

#include <memory>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/checks.hpp"
#include "solvers/frank_wolfe.hpp"

using namespace maxmargin;
using nb::arg;

namespace {

using Released = nb::call_guard<nb::gil_scoped_release>;

double* checked(const FrankWolfe& self, const Mutable1<double>& w) {
    require_length("weights", w.shape(0), self.space().n_weights());
    return w.data();
}

void require_uniforms(std::span<const double> uniforms) {
    for (const double u : uniforms) require(0.0 <= u && u < 1.0, "uniforms must lie in [0, 1).");
}

void bind_passes(nb::class_<FrankWolfe>& bound) {
    bound
        .def(
            "visit",
            [](FrankWolfe& self, Oracle& oracle, Array1<int64_t> order, int64_t batch_size, Mutable1<double> w) {
                require_numbers_of("example", as_span(order), self.space().n_examples());
                require(batch_size >= 1, "batch_size must be at least 1.");
                double* weights = checked(self, w);
                nb::gil_scoped_release release;
                return self.pass(oracle, as_span(order), batch_size, weights, workers(1));
            },
            arg("oracle"), arg("order"), arg("batch_size"), arg("weights").noconvert())
        .def(
            "visit_by_gaps",
            [](FrankWolfe& self, Oracle& oracle, Array1<double> uniforms, int64_t batch_size, Mutable1<double> w) {
                require_uniforms(as_span(uniforms));
                require(batch_size >= 1, "batch_size must be at least 1.");
                double* weights = checked(self, w);
                nb::gil_scoped_release release;
                return self.pass_by_gaps(oracle, as_span(uniforms), batch_size, weights, workers(1));
            },
            arg("oracle"), arg("uniforms"), arg("batch_size"), arg("weights").noconvert())
        .def(
            "draw",
            [](const FrankWolfe& self, Array1<double> uniforms) {
                require_uniforms(as_span(uniforms));
                return to_numpy(self.draw(as_span(uniforms)));
            },
            arg("uniforms"))
        .def(
            "gaps",
            [](const FrankWolfe& self) {
                std::vector<double> gaps;
                for (int64_t i = 0; i < self.space().n_examples(); ++i) gaps.push_back(self.gap(i));
                return to_numpy(std::move(gaps));
            })
        .def_prop_ro("total_gap", &FrankWolfe::total_gap);
}

}  // namespace

void bind_frank_wolfe(nb::module_& m) {
    nb::class_<FrankWolfe::Pass>(m, "FrankWolfePass").def_ro("gap", &FrankWolfe::Pass::gap).def_ro("moves", &FrankWolfe::Pass::moves);
    nb::class_<FrankWolfe> bound(m, "FrankWolfe");
    bound
        .def(
            "__init__",
            [](FrankWolfe* self, std::shared_ptr<PlaneSpace> space, Array1<double> budgets, Array1<int64_t> nonnegative, bool averages, int64_t max_planes) {
                require_length("budgets", budgets.shape(0), space->n_examples());
                require_amounts("budgets", as_span(budgets));
                require_numbers_of("non-negative weight", as_span(nonnegative), space->n_weights());
                require(max_planes >= 0, "max_planes must not be negative.");
                const auto C = as_span(budgets);
                const auto J = as_span(nonnegative);
                new (self) FrankWolfe(space, {C.begin(), C.end()}, {J.begin(), J.end()}, {averages, static_cast<size_t>(max_planes)});
            },
            arg("space"), arg("budgets"), arg("nonnegative"), arg("averages") = true, arg("max_planes") = 0, nb::keep_alive<1, 2>())
        .def(
            "start_from",
            [](FrankWolfe& self, const FrankWolfe& other, double factor) {
                require(other.space().n_examples() <= self.space().n_examples(), "the other has more examples than this one.");
                require_length("weights of the other", static_cast<size_t>(other.space().n_weights()), self.space().n_weights());
                require(std::isfinite(factor) && factor >= 0.0, "factor must be finite and not negative.");
                nb::gil_scoped_release release;
                self.start_from(other, factor);
            },
            arg("other"), arg("factor"))
        .def(
            "weights",
            [](FrankWolfe& self, Mutable1<double> w) {
                double* weights = checked(self, w);
                interruptible([&] { self.weights(weights); });
            },
            arg("weights").noconvert())
        .def(
            "average",
            [](const FrankWolfe& self, Mutable1<double> w) {
                double* weights = checked(self, w);
                interruptible([&] { self.average(weights); });
            },
            arg("weights").noconvert())
        .def("loss", &FrankWolfe::loss, Released())
        .def("average_loss", &FrankWolfe::average_loss, Released())
        .def(
            "worth",
            [](const FrankWolfe& self, Array1<int64_t> ids, Array1<double> w) {
                require_numbers_of("example", as_span(ids), self.space().n_examples());
                require_length("weights", w.shape(0), self.space().n_weights());
                return to_numpy(interruptible([&] { return self.worth(as_span(ids), w.data()); }));
            },
            arg("ids"), arg("weights").noconvert())
        .def_prop_ro("n_steps", &FrankWolfe::n_steps)
        .def_prop_ro("n_entries", &FrankWolfe::n_entries)
        .def_prop_ro("n_planes", &FrankWolfe::n_planes);
    bind_passes(bound);
}
