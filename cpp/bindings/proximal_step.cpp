// Steps that move the planes of all blocks at once, for Python.
#include "solvers/proximal_step.hpp"

#include <nanobind/stl/pair.h>

#include <cmath>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/checks.hpp"

using namespace maxmargin;
using nb::arg;

void bind_proximal_step(nb::module_& m) {
    nb::class_<ProximalStep::Point>(m, "ProximalPoint")
        .def_ro("value", &ProximalStep::Point::value)
        .def_ro("cost", &ProximalStep::Point::cost)
        .def_ro("linear", &ProximalStep::Point::linear)
        .def_ro("n_free", &ProximalStep::Point::n_free);
    nb::class_<ProximalStep>(m, "ProximalStep")
        .def_prop_ro("n_weights", &ProximalStep::n_weights)
        .def_prop_ro("n_blocks", &ProximalStep::n_blocks)
        .def_prop_ro("most_rows", &ProximalStep::most_rows)
        .def(
            "move",
            [](ProximalStep& self, Array1<double> w, double sigma, Mutable1<double> sum) {
                require_length("weights", w.shape(0), self.n_weights());
                require_length("sum", sum.shape(0), self.n_weights());
                require(sigma > 0.0 && std::isfinite(sigma), "sigma must be positive.");
                return interruptible([&] { return self.move(w.data(), sigma, sum.data()); });
            },
            arg("weights").noconvert(), arg("sigma"), arg("sum").noconvert())
        .def(
            "write_curvature",
            [](const ProximalStep& self, int64_t first_block, nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu> rows) {
                require(first_block >= 0, "first_block must not be negative.");
                require_length("columns of rows", rows.shape(1), self.n_weights());
                require(static_cast<int64_t>(rows.shape(0)) >= self.most_rows(), "rows must have room for the planes of every block.");
                auto block = static_cast<size_t>(first_block);
                const int64_t n_rows = interruptible([&] { return self.write_curvature(block, rows.data(), rows.shape(0)); });
                return std::pair(static_cast<int64_t>(block), n_rows);
            },
            arg("first_block"), arg("rows").noconvert())
        .def(
            "multiply_curvature",
            [](const ProximalStep& self, Array1<double> vector, Mutable1<double> out) {
                require_length("vector", vector.shape(0), self.n_weights());
                require_length("out", out.shape(0), self.n_weights());
                interruptible([&] { self.multiply_curvature(vector.data(), out.data()); });
            },
            arg("vector").noconvert(), arg("out").noconvert())
        .def("accept", &ProximalStep::accept)
        .def("take", &ProximalStep::take)
        .def("scale", &ProximalStep::scale);
}
