// Features and structures for Python. Arrays are not copied: the bound objects keep them alive.
#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <type_traits>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/checks.hpp"
#include "scores/kernels.hpp"
#include "structures/binary.hpp"
#include "structures/chain.hpp"
#include "structures/multiclass.hpp"

using namespace maxmargin;
using nb::arg;

namespace {

using OptionalDoubles = std::optional<Array1<double>>;
using OptionalLabels = std::optional<Array1<int32_t>>;

constexpr int64_t most_examples = std::numeric_limits<int32_t>::max();
constexpr int64_t most_features = std::numeric_limits<int32_t>::max();
// Slack rescaling keeps a table of scores for every step of loss.
constexpr double most_steps = 1e6;

void check_labels(const OptionalLabels& labels, int64_t n, int n_labels) {
    require_between("n_labels", n_labels, 1, most_labels);
    if (!labels) return;
    require_length("truth", labels->shape(0), n);
    require_numbers_of("label number", as_span(*labels), n_labels);
}

void check_cost(const std::optional<Array2<double>>& cost, int n_labels) {
    if (!cost) return;
    require_length("rows of cost", cost->shape(0), n_labels);
    require_length("columns of cost", cost->shape(1), n_labels);
    require_amounts("cost", {cost->data(), cost->size()});
}

void check_offsets(std::span<const int64_t> offsets) {
    require(!offsets.empty() && offsets.front() == 0, "offsets must begin with 0.");
    require_between("number of sequences", static_cast<int64_t>(offsets.size()) - 1, 0, most_examples);
    for (size_t i = 0; i + 1 < offsets.size(); ++i)
        if (offsets[i] >= offsets[i + 1]) throw std::invalid_argument("offsets must ascend: sequence " + std::to_string(i) + " is empty.");
}

// Losses are counted in steps, which index a table.
void check_step(double step, const std::optional<Array2<double>>& cost, const OptionalDoubles& row_weight) {
    const auto largest = [](const double* first, size_t n) { return n ? *std::max_element(first, first + n) : 1.0; };
    const double loss = (cost ? largest(cost->data(), cost->size()) : 1.0) * (row_weight ? largest(row_weight->data(), row_weight->size()) : 1.0);
    require(std::isfinite(step) && step >= 0.0 && (step == 0.0 || loss <= most_steps * step),
            "loss_step must be 0, or a finite number of which the largest loss is at most a million steps.");
}

void check_rows(std::span<const int64_t> indptr, std::span<const int32_t> indices, int64_t n_features) {
    require_between("n_features", n_features, 0, most_features);
    require(!indptr.empty() && indptr.front() == 0 && indptr.back() == static_cast<int64_t>(indices.size()), "indptr does not fit indices.");
    require(std::is_sorted(indptr.begin(), indptr.end()), "indptr must not decrease.");
    require_numbers_of("feature number", indices, n_features);
}

template <class Real>
void bind_dense(nb::class_<Features>& features) {
    features.def(
        "__init__",
        [](Features* self, Array2<Real> dense) {
            Features view{static_cast<int64_t>(dense.shape(0)), static_cast<int64_t>(dense.shape(1)), nullptr, nullptr, nullptr, nullptr};
            if constexpr (std::is_same_v<Real, float>) view.values32 = dense.data();
            else view.values64 = dense.data();
            new (self) Features{view};
        },
        arg("dense").noconvert(), nb::keep_alive<1, 2>());
}

void bind_features(nb::module_& m) {
    nb::class_<Features> features(m, "Features");
    features
        .def(
            "__init__",
            [](Features* self, Array1<int64_t> indptr, Array1<int32_t> indices, std::optional<Array1<float>> values32, OptionalDoubles values64, int64_t n_features) {
                {
                    nb::gil_scoped_release release;
                    check_rows(as_span(indptr), as_span(indices), n_features);
                }
                const auto nnz = static_cast<int64_t>(indices.shape(0));
                require(!values32 || !values64, "values are given twice, as float and as double.");
                if (values32) require_length("values", values32->shape(0), nnz);
                if (values64) require_length("values", values64->shape(0), nnz);
                new (self) Features{static_cast<int64_t>(indptr.shape(0)) - 1, n_features, indptr.data(), indices.data(), data_or_null(values32), data_or_null(values64)};
            },
            arg("indptr").noconvert(), arg("indices").noconvert(), arg("values32").none().noconvert(), arg("values64").none().noconvert(), arg("n_features"), nb::keep_alive<1, 2>(),
            nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(), nb::keep_alive<1, 5>());
    bind_dense<float>(features);
    bind_dense<double>(features);
}

void bind_single_labels(nb::module_& m) {
    nb::class_<Binary, Structure>(m, "Binary")
        .def(
            "__init__",
            [](Binary* self, int64_t n, OptionalLabels truth, double cost_of_negative, double cost_of_positive) {
                require_between("n", n, 0, most_examples);
                if (truth) {
                    require_length("truth", truth->shape(0), n);
                    const auto labels = as_span(*truth);
                    require(std::all_of(labels.begin(), labels.end(), [](int32_t y) { return y == 1 || y == -1; }), "truth must hold −1 and +1 only.");
                }
                require_amounts("cost", std::array{cost_of_negative, cost_of_positive});
                new (self) Binary(n, data_or_null(truth), cost_of_negative, cost_of_positive);
            },
            arg("n"), arg("truth").none().noconvert(), arg("cost_of_negative") = 1.0, arg("cost_of_positive") = 1.0, nb::keep_alive<1, 3>());

    nb::class_<Multiclass, Structure>(m, "Multiclass")
        .def(
            "__init__",
            [](Multiclass* self, int64_t n, int n_labels, OptionalLabels truth, std::optional<Array2<double>> cost) {
                require_between("n", n, 0, most_examples);
                check_labels(truth, n, n_labels);
                check_cost(cost, n_labels);
                new (self) Multiclass(n, n_labels, data_or_null(truth), NodeLoss{data_or_null(cost), nullptr});
            },
            arg("n"), arg("n_labels"), arg("truth").none().noconvert(), arg("cost").none().noconvert() = nb::none(), nb::keep_alive<1, 4>(), nb::keep_alive<1, 5>());
}

void bind_chain(nb::module_& m) {
    nb::class_<Chain, Structure>(m, "Chain")
        .def(
            "__init__",
            [](Chain* self, Array1<int64_t> offsets, int n_labels, bool has_ends, OptionalLabels truth, std::optional<Array2<uint8_t>> forbidden,
               std::optional<Array2<double>> cost, OptionalDoubles row_weight, double loss_step) {
                check_offsets(as_span(offsets));
                const int64_t n = static_cast<int64_t>(offsets.shape(0)) - 1, n_rows = offsets(n);
                check_labels(truth, n_rows, n_labels);
                check_cost(cost, n_labels);
                if (forbidden) {
                    require_length("rows of forbidden", forbidden->shape(0), n_labels);
                    require_length("columns of forbidden", forbidden->shape(1), n_labels);
                }
                if (row_weight) {
                    require_length("row_weight", row_weight->shape(0), n_rows);
                    require_amounts("row_weight", as_span(*row_weight));
                }
                check_step(loss_step, cost, row_weight);
                new (self) Chain(ChainData{n, offsets.data(), n_labels, has_ends, data_or_null(truth), data_or_null(forbidden),
                                           NodeLoss{data_or_null(cost), data_or_null(row_weight)}, loss_step});
            },
            arg("offsets").noconvert(), arg("n_labels"), arg("has_ends"), arg("truth").none().noconvert(), arg("forbidden").none().noconvert() = nb::none(), arg("cost").none().noconvert() = nb::none(),
            arg("row_weight").none().noconvert() = nb::none(), arg("loss_step") = 0.0, nb::keep_alive<1, 2>(), nb::keep_alive<1, 5>(), nb::keep_alive<1, 6>(),
            nb::keep_alive<1, 7>(), nb::keep_alive<1, 8>());
}

}  // namespace

void bind_structures(nb::module_& m) {
    bind_features(m);
    nb::class_<Structure>(m, "Structure").def_prop_ro("n_examples", &Structure::n_examples);
    bind_single_labels(m);
    bind_chain(m);
}
