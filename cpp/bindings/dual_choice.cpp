// The choice of outputs that cuts are made of, for Python.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/checks.hpp"
#include "solvers/dual_choice.hpp"

using namespace maxmargin;
using nb::arg;

void bind_dual_choice(nb::module_& m) {
    nb::class_<DualChoice>(m, "DualChoice")
        .def(
            "__init__",
            [](DualChoice* self, const PlaneSpace& space, const std::vector<std::shared_ptr<PlaneBatch>>& outputs, Array1<double> w,
               std::optional<Array1<double>> sample_weight) {
                require(!outputs.empty(), "outputs must have a batch of planes at least.");
                for (const std::shared_ptr<PlaneBatch>& planes : outputs) {
                    require(planes != nullptr, "outputs must be batches of planes.");
                    space.check_one_each(*planes);
                }
                require_length("weights", w.shape(0), space.n_weights());
                if (sample_weight) require_length("sample_weight", sample_weight->shape(0), space.n_examples());
                const auto s = sample_weight ? as_span(*sample_weight) : std::span<const double>();
                interruptible([&] { new (self) DualChoice(space, {outputs.begin(), outputs.end()}, as_span(w), s); });
            },
            arg("space"), arg("outputs"), arg("weights").noconvert(), arg("sample_weight").none().noconvert(), nb::keep_alive<1, 2>(),
            nb::keep_alive<1, 4>(), nb::keep_alive<1, 5>())
        .def(
            "choose",
            [](DualChoice& self, double C, double linear, int64_t start, int n_sweeps) {
                require(std::isfinite(C) && C > 0.0 && std::isfinite(linear), "C must be a positive number, linear a number.");
                require_between("start", start, 0, self.n_outputs() - 1);
                require_between("n_sweeps", n_sweeps, 0, 1000);
                return to_numpy(interruptible([&] { return self.choose(C, linear, start, n_sweeps); }));
            },
            arg("C"), arg("linear"), arg("start"), arg("n_sweeps"));
}
