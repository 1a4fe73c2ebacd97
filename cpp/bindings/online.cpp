// Passes of online learners for Python.
#include <nanobind/stl/shared_ptr.h>

#include <cmath>
#include <memory>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/checks.hpp"
#include "solvers/online_pass.hpp"

using namespace maxmargin;
using nb::arg;

namespace {

void check_order(const OnlinePass& pass, const Array1<int64_t>& order) {
    require_numbers_of("example", as_span(order), pass.space().n_examples());
}

void check_late(const OnlinePass& pass, size_t length) { require_length("late", length, pass.space().n_weights()); }

void require_positive(const char* name, double value) { require(value > 0.0, std::string(name) + " must be positive."); }

template <class T>
std::vector<T> copied(const Array1<T>& array) {
    const auto values = as_span(array);
    return {values.begin(), values.end()};
}

OnlinePass::Seen sgd(OnlinePass& self, Array1<int64_t> order, Oracle& oracle, double eta0, double decay, double nC) {
    check_order(self, order);
    require_positive("eta0", eta0);
    require_positive("decay", decay);
    require_positive("nC", nC);
    nb::gil_scoped_release release;
    return self.sgd(as_span(order), oracle, {eta0, decay, nC}, workers(1));
}

}  // namespace

void bind_online(nb::module_& m) {
    nb::class_<OnlinePass::Seen>(m, "SeenByPass").def_ro("updates", &OnlinePass::Seen::updates).def_ro("loss", &OnlinePass::Seen::loss);
    nb::class_<OnlinePass>(m, "OnlinePass")
        .def(
            "__init__",
            [](OnlinePass* self, std::shared_ptr<PlaneSpace> space, Mutable1<double> w, std::optional<Mutable1<float>> rounded,
               std::optional<Array1<double>> sample_weight, int64_t visits, Array1<int64_t> nonnegative) {
                require_length("weights", w.shape(0), space->n_weights());
                if (rounded) require_length("rounded weights", rounded->shape(0), space->n_weights());
                require(visits >= 0, "visits must not be negative.");
                require_numbers_of("non-negative weight", as_span(nonnegative), space->n_weights());
                std::vector<double> s;
                if (sample_weight) {
                    require_length("sample_weight", sample_weight->shape(0), space->n_examples());
                    require_amounts("sample_weight", as_span(*sample_weight));
                    s = copied(*sample_weight);
                }
                new (self) OnlinePass(space, {w.data(), data_or_null(rounded)}, std::move(s), visits, copied(nonnegative));
            },
            arg("space"), arg("weights").noconvert(), arg("rounded").none().noconvert(), arg("sample_weight").none(), arg("visits"), arg("nonnegative"),
            nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>())
        .def_prop_ro("visits", &OnlinePass::visits)
        .def(
            "perceptron",
            [](OnlinePass& self, Array1<int64_t> order, Oracle& oracle, Mutable1<double> late) {
                check_order(self, order);
                check_late(self, late.shape(0));
                nb::gil_scoped_release release;
                return self.perceptron(as_span(order), oracle, late.data(), workers(1));
            },
            arg("order"), arg("oracle"), arg("late").noconvert())
        .def(
            "mira",
            [](OnlinePass& self, Array1<int64_t> order, Oracle& oracle, double C, Mutable1<double> late) {
                check_order(self, order);
                check_late(self, late.shape(0));
                require_positive("C", C);
                nb::gil_scoped_release release;
                return self.mira(as_span(order), oracle, C, late.data(), workers(1));
            },
            arg("order"), arg("oracle"), arg("C"), arg("late").noconvert())
        .def("sgd", &sgd, arg("order"), arg("oracle"), arg("eta0"), arg("decay"), arg("nC"))
        .def("fold", &OnlinePass::fold, nb::call_guard<nb::gil_scoped_release>());
}
