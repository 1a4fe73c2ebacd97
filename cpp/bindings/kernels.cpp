// Kernel products for Python.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <cmath>
#include <memory>
#include <variant>

#include "bindings/any_product.hpp"
#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/checks.hpp"
#include "planes/kernel_space.hpp"
#include "scores/row_columns.hpp"
#include "scores/row_order.hpp"

using namespace maxmargin;
using nb::arg;

namespace {

KernelKind kind_named(const std::string& name) {
    if (name == "linear") return KernelKind::linear;
    if (name == "poly") return KernelKind::polynomial;
    if (name == "rbf") return KernelKind::rbf;
    if (name == "sigmoid") return KernelKind::sigmoid;
    throw std::invalid_argument("kernel must be 'linear', 'poly', 'rbf' or 'sigmoid', found '" + name + "'.");
}

void add(AnyProduct& self, Array1<int64_t> points, Array1<int64_t> starts, Array1<int32_t> labels, Array1<double> values, int stride, Mutable1<double> out,
         int n_threads) {
    self.visit([&](auto& product) {
        const std::span<const int64_t> ids = as_span(points), begins = as_span(starts);
        require(stride >= 1, "stride must be at least 1.");
        require_length("out", out.shape(0), product.n_rows() * stride);
        require_numbers_of("point", ids, product.n_points());
        for (size_t k = 1; k < ids.size(); ++k) require(ids[k - 1] < ids[k], "points must be listed once each, in their order.");
        require_length("starts", begins.size(), static_cast<int64_t>(ids.size()) + 1);
        require_length("values", values.shape(0), static_cast<int64_t>(labels.shape(0)));
        require(begins.front() == 0 && begins.back() == static_cast<int64_t>(labels.shape(0)), "starts must begin with 0 and end with the number of labels.");
        for (size_t k = 1; k < begins.size(); ++k) require(begins[k - 1] <= begins[k], "starts must not fall.");
        require_numbers_of("label", as_span(labels), stride);
        nb::gil_scoped_release release;
        product.add({ids, begins, as_span(labels), as_span(values)}, stride, out.data(), workers(n_threads));
    });
}

nb::object matrix(AnyProduct& self, Array1<int64_t> points, int64_t first, int64_t end, int n_threads) {
    return self.visit([&]<class Scalar>(KernelProduct<Scalar>& product) {
        require_numbers_of("point", as_span(points), product.n_points());
        require_between("first", first, 0, product.n_rows());
        require_between("end", end, first, product.n_rows());
        const size_t n_rows = static_cast<size_t>(end - first), width = points.shape(0);
        std::vector<Scalar> out(n_rows * width);
        {
            nb::gil_scoped_release release;
            product.matrix(as_span(points), first, end, out.data(), workers(n_threads));
        }
        return nb::cast(to_numpy(std::move(out), {n_rows, width}));
    });
}

template <class Scalar>
std::shared_ptr<RowColumns> stored_columns(Array2<Scalar> matrix, double constant, int n_threads) {
    const int64_t n_rows = static_cast<int64_t>(matrix.shape(0));
    require_length("a row of the matrix", matrix.shape(1), n_rows);
    require(std::isfinite(constant), "constant must be finite.");
    auto columns = std::make_shared<StoredColumns<Scalar>>(matrix.data(), n_rows, constant, workers(n_threads));
    require_amounts("diagonal", columns->diagonal());
    return columns;
}

void bind_row_columns(nb::module_& m) {
    nb::class_<RowColumns>(m, "RowColumns");
    m.def(
        "kernel_columns",
        [](AnyProduct& product, Array1<double> diagonal, double constant, int n_threads) {
            const auto k = as_span(diagonal);
            require_length("diagonal", k.size(), product.n_rows());
            require_amounts("diagonal", k);
            require(std::isfinite(constant), "constant must be finite.");
            return product.columns_of({k.begin(), k.end()}, constant, workers(n_threads));
        },
        arg("product"), arg("diagonal"), arg("constant"), arg("n_threads"), nb::keep_alive<0, 1>());
    m.def("stored_columns", stored_columns<double>, arg("matrix").noconvert(), arg("constant"), arg("n_threads"), nb::keep_alive<0, 1>());
    m.def("stored_columns", stored_columns<float>, arg("matrix").noconvert(), arg("constant"), arg("n_threads"), nb::keep_alive<0, 1>());
}

void bind_kernel_space(nb::module_& m) {
    nb::class_<KernelSpace, LinearSpace>(m, "KernelSpace")
        .def(
            "__init__",
            [](KernelSpace* self, const LinearSpace& rows, std::shared_ptr<RowColumns> columns) {
                require(rows.features().names_rows(), "the features must name the rows.");
                require_length("columns", columns->diagonal().size(), rows.features().n_rows);
                new (self) KernelSpace(rows, columns);
            },
            arg("rows"), arg("columns"), nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>());
}

}  // namespace

void bind_kernels(nb::module_& m) {
    m.def(
        "order_alike",
        [](const Features& rows, std::optional<Array1<int32_t>> codes) {
            require(!rows.is_sparse(), "rows must be dense.");
            std::span<const int32_t> own;
            if (codes) {
                own = as_span(*codes);
                require_length("codes", own.size(), rows.n_rows);
            }
            std::vector<int64_t> order;
            interruptible([&] { order = order_alike(rows, own, panel_rows); });
            return to_numpy(std::move(order), {static_cast<size_t>(rows.n_rows)});
        },
        arg("rows"), arg("codes").none());
    nb::class_<AnyProduct>(m, "KernelProduct")
        .def(
            "__init__",
            [](AnyProduct* self, const Features& rows, const Features* points, const std::string& kernel, double gamma, double coef0, int32_t degree,
               std::optional<Array1<double>> centre, bool is_single, double cache_bytes, std::optional<Array1<int32_t>> codes,
               std::optional<Array2<double>> distances2, double negligible) {
                const KernelFunction function{kind_named(kernel), gamma, coef0, degree};
                require(std::isfinite(gamma) && gamma > 0.0, "gamma must be a positive number.");
                require(std::isfinite(coef0) && degree >= 0 && degree <= 1000, "coef0 must be finite, degree from 0 to 1000.");
                require(cache_bytes >= 0.0, "cache_bytes must not be negative.");
                require(!points || (points->n_features == rows.n_features && points->is_sparse() == rows.is_sparse()),
                        "rows and points must have the same features, both sparse or both dense.");
                require(negligible >= 0.0 && negligible < 1.0, "negligible must be at least 0 and below 1.");
                if (centre) require_length("centre", centre->shape(0), rows.n_features);
                require(codes.has_value() == distances2.has_value(), "codes and distances2 must be given together.");
                std::span<const int32_t> parts;
                std::span<const double> table;
                int64_t n_codes = 0;
                if (codes) {
                    require(function.kind == KernelKind::rbf && !points && !rows.is_sparse(), "codes are for the RBF kernel of dense rows with themselves.");
                    parts = as_span(*codes);
                    n_codes = static_cast<int64_t>(distances2->shape(0));
                    require_length("codes", parts.size(), rows.n_rows);
                    require_length("a row of distances2", distances2->shape(1), n_codes);
                    require_numbers_of("code", parts, n_codes);
                    table = {distances2->data(), distances2->size()};
                    require_amounts("distances2", table);
                }
                nb::gil_scoped_release release;
                const double* middle = data_or_null(centre);
                if (is_single) new (self) AnyProduct{AnyProduct::make<float>(rows, points, function, middle, cache_bytes, parts, table, n_codes, negligible)};
                else new (self) AnyProduct{AnyProduct::make<double>(rows, points, function, middle, cache_bytes, parts, table, n_codes, negligible)};
            },
            arg("rows"), arg("points").none(), arg("kernel"), arg("gamma"), arg("coef0"), arg("degree"), arg("centre").none(), arg("is_single"),
            arg("cache_bytes"), arg("codes").none() = nb::none(), arg("distances2").none() = nb::none(), arg("negligible") = 0.0)
        .def("add", add, arg("points"), arg("starts"), arg("labels"), arg("values"), arg("stride"), arg("out").noconvert(), arg("n_threads"))
        .def("matrix", matrix, arg("points"), arg("first"), arg("end"), arg("n_threads"))
        .def_prop_ro("leaves_out", [](AnyProduct& self) { return self.visit([](auto& product) { return product.leaves_out(); }); })
        .def_prop_ro("n_computed", [](AnyProduct& self) { return self.visit([](auto& product) { return product.n_computed(); }); });
    bind_row_columns(m);
    bind_kernel_space(m);
}
