// Features, structures and plane spaces for Python. Arrays are not copied: the bound objects keep them alive.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <memory>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "planes/linear_space.hpp"
#include "planes/score_line.hpp"
#include "planes/vector_space.hpp"
#include "scores/kernels.hpp"
#include "structures/binary.hpp"
#include "structures/chain.hpp"
#include "structures/multiclass.hpp"

using namespace maxmargin;
using nb::arg;

namespace {

using OptionalDoubles = std::optional<Array1<double>>;

Rescaling rescaling_named(const std::string& name) {
    if (name == "margin") return Rescaling::margin;
    if (name == "slack") return Rescaling::slack;
    throw std::invalid_argument("rescaling must be 'margin' or 'slack', found '" + name + "'.");
}

WeightsView view(const PlaneSpace& space, const Array1<double>& w, const std::optional<Array1<float>>& rounded) {
    require_length("weights", w.shape(0), space.n_weights());
    if (rounded) require_length("rounded weights", rounded->shape(0), space.n_weights());
    return {w.data(), data_or_null(rounded)};
}

void check_labels(const int32_t* labels, int64_t n, int n_labels) {
    for (int64_t i = 0; labels && i < n; ++i)
        if (labels[i] < 0 || labels[i] >= n_labels)
            throw std::invalid_argument("label number " + std::to_string(labels[i]) + " at row " + std::to_string(i) + " is not in 0 … " + std::to_string(n_labels - 1) + ".");
}

void bind_features(nb::module_& m) {
    nb::class_<Features>(m, "Features")
        .def(
            "__init__",
            [](Features* self, Array1<int64_t> indptr, Array1<int32_t> indices, std::optional<Array1<float>> values32, OptionalDoubles values64, int64_t n_features) {
                const int64_t n_rows = static_cast<int64_t>(indptr.shape(0)) - 1, nnz = static_cast<int64_t>(indices.shape(0));
                if (n_rows < 0 || indptr(0) != 0 || indptr(n_rows) != nnz) throw std::invalid_argument("indptr does not fit indices.");
                for (int64_t r = 0; r < n_rows; ++r)
                    if (indptr(r) > indptr(r + 1)) throw std::invalid_argument("indptr must not decrease.");
                for (int64_t j = 0; j < nnz; ++j)
                    if (indices(j) < 0 || indices(j) >= n_features) throw std::invalid_argument("a feature number is out of range.");
                if (values32) require_length("values", values32->shape(0), nnz);
                if (values64) require_length("values", values64->shape(0), nnz);
                new (self) Features{n_rows, n_features, indptr.data(), indices.data(), data_or_null(values32), data_or_null(values64)};
            },
            arg("indptr").noconvert(), arg("indices").noconvert(), arg("values32").none().noconvert(), arg("values64").none().noconvert(), arg("n_features"), nb::keep_alive<1, 2>(),
            nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(), nb::keep_alive<1, 5>())
        .def(
            "__init__",
            [](Features* self, Array2<float> dense) {
                new (self) Features{static_cast<int64_t>(dense.shape(0)), static_cast<int64_t>(dense.shape(1)), nullptr, nullptr, dense.data(), nullptr};
            },
            arg("dense").noconvert(), nb::keep_alive<1, 2>())
        .def(
            "__init__",
            [](Features* self, Array2<double> dense) {
                new (self) Features{static_cast<int64_t>(dense.shape(0)), static_cast<int64_t>(dense.shape(1)), nullptr, nullptr, nullptr, dense.data()};
            },
            arg("dense").noconvert(), nb::keep_alive<1, 2>())
        .def_ro("n_rows", &Features::n_rows)
        .def_ro("n_features", &Features::n_features);
}

void bind_structures(nb::module_& m) {
    nb::class_<Structure>(m, "Structure").def_prop_ro("n_examples", &Structure::n_examples).def_prop_ro("n_table", &Structure::n_table);

    nb::class_<Binary, Structure>(m, "Binary")
        .def(
            "__init__",
            [](Binary* self, int64_t n, std::optional<Array1<int32_t>> truth, double cost_of_negative, double cost_of_positive) {
                if (truth) require_length("truth", truth->shape(0), n);
                new (self) Binary(n, data_or_null(truth), cost_of_negative, cost_of_positive);
            },
            arg("n"), arg("truth").none().noconvert(), arg("cost_of_negative") = 1.0, arg("cost_of_positive") = 1.0, nb::keep_alive<1, 3>());

    nb::class_<Multiclass, Structure>(m, "Multiclass")
        .def(
            "__init__",
            [](Multiclass* self, int64_t n, int n_labels, std::optional<Array1<int32_t>> truth, std::optional<Array2<double>> cost) {
                if (truth) require_length("truth", truth->shape(0), n);
                check_labels(data_or_null(truth), n, n_labels);
                new (self) Multiclass(n, n_labels, data_or_null(truth), NodeLoss{data_or_null(cost), nullptr});
            },
            arg("n"), arg("n_labels"), arg("truth").none().noconvert(), arg("cost").none().noconvert() = nb::none(), nb::keep_alive<1, 4>(), nb::keep_alive<1, 5>());

    nb::class_<Chain, Structure>(m, "Chain")
        .def(
            "__init__",
            [](Chain* self, Array1<int64_t> offsets, int n_labels, bool has_ends, std::optional<Array1<int32_t>> truth,
               std::optional<Array2<uint8_t>> forbidden, std::optional<Array2<double>> cost, OptionalDoubles row_weight, double loss_step) {
                const int64_t n = static_cast<int64_t>(offsets.shape(0)) - 1;
                for (int64_t i = 0; i < n; ++i)
                    if (offsets(i) >= offsets(i + 1)) throw std::invalid_argument("sequence " + std::to_string(i) + " is empty.");
                if (truth) require_length("truth", truth->shape(0), offsets(n));
                if (row_weight) require_length("row_weight", row_weight->shape(0), offsets(n));
                check_labels(data_or_null(truth), offsets(n), n_labels);
                new (self) Chain(ChainData{n, offsets.data(), n_labels, has_ends, data_or_null(truth), data_or_null(forbidden),
                                           NodeLoss{data_or_null(cost), data_or_null(row_weight)}, loss_step});
            },
            arg("offsets").noconvert(), arg("n_labels"), arg("has_ends"), arg("truth").none().noconvert(), arg("forbidden").none().noconvert() = nb::none(), arg("cost").none().noconvert() = nb::none(),
            arg("row_weight").none().noconvert() = nb::none(), arg("loss_step") = 0.0, nb::keep_alive<1, 2>(), nb::keep_alive<1, 5>(), nb::keep_alive<1, 6>(),
            nb::keep_alive<1, 7>(), nb::keep_alive<1, 8>());
}

nb::ndarray<nb::numpy, double> max_marginals(const LinearSpace& space, const Chain& chain, Array1<double> w) {
    require_length("weights", w.shape(0), space.n_weights());
    const int64_t n = space.n_examples(), k = chain.n_labels();
    const int64_t rows = n == 0 ? 0 : chain.rows(n - 1).end;
    std::vector<double> out(rows * k);
    {
        nb::gil_scoped_release release;
        for_each_chunk(n, workers(1), [&](int64_t i, int) {
            space.with_scores(i, w.data(), [&](PartScores<double> scores) { chain.max_marginals(i, scores, out.data() + chain.rows(i).begin * k); });
        });
    }
    return to_numpy(std::move(out), {static_cast<size_t>(rows), static_cast<size_t>(k)});
}

nb::tuple k_best(const LinearSpace& space, const Chain& chain, Array1<double> w, int64_t example, int64_t k) {
    require_length("weights", w.shape(0), space.n_weights());
    if (example < 0 || example >= space.n_examples()) throw std::invalid_argument("no such example.");
    const int64_t length = chain.rows(example).length();
    std::vector<int32_t> codes(k * length);
    std::vector<double> values(k);
    int64_t found = 0;
    space.with_scores(example, w.data(), [&](PartScores<double> scores) { found = chain.k_best(example, scores, k, codes.data(), values.data()); });
    codes.resize(found * length);
    values.resize(found);
    return nb::make_tuple(to_numpy(std::move(codes), {static_cast<size_t>(found), static_cast<size_t>(length)}), to_numpy(std::move(values)));
}

void bind_batches(nb::module_& m) {
    nb::class_<PlaneBatch>(m, "PlaneBatch")
        .def(nb::init<>())
        .def("__len__", &PlaneBatch::size)
        .def(
            "add_vector",
            [](PlaneBatch& self, int32_t example, double loss, Array1<int32_t> indices, Array1<double> values) {
                require_length("values", values.shape(0), static_cast<int64_t>(indices.shape(0)));
                for (size_t j = 0; j < indices.shape(0); ++j)
                    if (indices(j) < (j > 0 ? indices(j - 1) + 1 : 0)) throw std::invalid_argument("indices must ascend from 0.");
                self.add(example, loss, VectorSpace::encode(as_span(indices), as_span(values)));
            },
            arg("example"), arg("loss"), arg("indices"), arg("values"))
        .def("extend", &PlaneBatch::append, arg("other"))
        .def("examples", [](const PlaneBatch& self) { return to_numpy(std::vector(self.examples)); })
        .def("losses", [](const PlaneBatch& self) { return to_numpy(std::vector(self.losses)); })
        .def("code", [](const PlaneBatch& self, int64_t k) {
            if (k < 0 || k >= self.size()) throw nb::index_error();
            const Code code = self.code(k);
            return to_numpy(std::vector<int32_t>(code.begin(), code.end()));
        });
}

// Products of single planes, for tests and for callers that need few of them.
void bind_arithmetic(nb::class_<PlaneSpace>& space) {
    space
        .def(
            "dots",
            [](const PlaneSpace& self, const PlaneBatch& batch, Array1<double> w, std::optional<Array1<float>> rounded) {
                const WeightsView weights = view(self, w, rounded);
                const auto scratch = self.scratch();
                std::vector<double> out(batch.size());
                for (int64_t k = 0; k < batch.size(); ++k) {
                    const Code code = batch.code(k);
                    self.dots(batch.examples[k], std::span(&code, 1), std::span(&batch.losses[k], 1), weights, *scratch, &out[k]);
                }
                return to_numpy(std::move(out));
            },
            arg("batch"), arg("weights"), arg("rounded").none() = nb::none())
        .def(
            "add",
            [](const PlaneSpace& self, const PlaneBatch& batch, Array1<double> coefficients, Mutable1<double> w) {
                require_length("coefficients", coefficients.shape(0), batch.size());
                require_length("weights", w.shape(0), self.n_weights());
                const auto scratch = self.scratch();
                for (int64_t k = 0; k < batch.size(); ++k)
                    self.add(batch.examples[k], batch.code(k), batch.losses[k], coefficients(k), w.data(), *scratch);
            },
            arg("batch"), arg("coefficients"), arg("weights"))
        .def(
            "inner",
            [](const PlaneSpace& self, const PlaneBatch& batch, int64_t i, int64_t j) {
                if (std::min(i, j) < 0 || std::max(i, j) >= batch.size()) throw nb::index_error();
                if (batch.examples[i] != batch.examples[j]) throw std::invalid_argument("planes of two examples have no stored product.");
                const auto scratch = self.scratch();
                const Code other = batch.code(j);
                double out = 0.0;
                self.inner(batch.examples[i], batch.code(i), batch.losses[i], std::span(&other, 1), std::span(&batch.losses[j], 1), *scratch, &out);
                return out;
            },
            arg("batch"), arg("i"), arg("j"));
}

}  // namespace

void bind_spaces(nb::module_& m) {
    m.def("instruction_set", [] { return std::string(kernels().name); });
    m.def("padded_labels", &padded_labels, arg("n_labels"));
    nb::register_exception_translator([](const std::exception_ptr& p, void*) {
        try {
            std::rethrow_exception(p);
        } catch (const Interrupted&) {
            if (!PyErr_Occurred()) PyErr_SetNone(PyExc_KeyboardInterrupt);
        }
    });
    bind_features(m);
    bind_structures(m);
    bind_batches(m);

    nb::class_<PlaneSpace> space(m, "PlaneSpace");
    space.def_prop_ro("n_examples", &PlaneSpace::n_examples).def_prop_ro("n_weights", &PlaneSpace::n_weights);
    bind_arithmetic(space);

    nb::class_<VectorSpace, PlaneSpace>(m, "VectorSpace")
        .def(
            "__init__", [](VectorSpace* self, int64_t n_examples, int64_t n_weights, const std::string& rescaling) { new (self) VectorSpace(n_examples, n_weights, rescaling_named(rescaling)); },
            arg("n_examples"), arg("n_weights"), arg("rescaling"));

    nb::class_<LinearSpace, PlaneSpace>(m, "LinearSpace")
        .def(
            "__init__",
            [](LinearSpace* self, const Features& features, std::shared_ptr<Structure> structure, const std::string& rescaling) {
                const int64_t n = structure->n_examples();
                const int64_t rows = n == 0 ? 0 : structure->rows(n - 1).end;
                if (rows != features.n_rows)
                    throw std::invalid_argument("the features have " + std::to_string(features.n_rows) + " rows but the structure " + std::to_string(rows) + ".");
                new (self) LinearSpace(features, structure, rescaling_named(rescaling));
            },
            arg("features"), arg("structure"), arg("rescaling"), nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
        .def_prop_ro("stride", &LinearSpace::stride)
        .def_prop_ro("table_start", &LinearSpace::table_start)
        .def(
            "separate",
            [](const LinearSpace& self, Array1<int64_t> ids, Array1<double> w, std::optional<Array1<float>> rounded, int n_threads) {
                const WeightsView weights = view(self, w, rounded);
                for (size_t k = 0; k < ids.shape(0); ++k)
                    if (ids(k) < 0 || ids(k) >= self.n_examples()) throw std::invalid_argument("an example number is out of range.");
                nb::gil_scoped_release release;
                return self.separate(as_span(ids), weights, workers(n_threads));
            },
            arg("ids"), arg("weights"), arg("rounded").none(), arg("n_threads"))
        .def(
            "separate_and_sum",
            [](const LinearSpace& self, Array1<double> w, std::optional<Array1<float>> rounded, OptionalDoubles sample_weight, int n_threads) {
                const WeightsView weights = view(self, w, rounded);
                if (sample_weight) require_length("sample_weight", sample_weight->shape(0), self.n_examples());
                ReducedCut cut;
                {
                    nb::gil_scoped_release release;
                    cut = self.separate_and_sum(weights, data_or_null(sample_weight), workers(n_threads));
                }
                return nb::make_tuple(cut.loss, to_numpy(std::move(cut.sum)), cut.n_planes);
            },
            arg("weights"), arg("rounded").none(), arg("sample_weight").none(), arg("n_threads"))
        .def(
            "predict",
            [](const LinearSpace& self, Array1<double> w, int n_threads) {
                const WeightsView weights = view(self, w, std::nullopt);
                std::vector<int32_t> codes;
                {
                    nb::gil_scoped_release release;
                    codes = self.predict(weights, workers(n_threads));
                }
                return to_numpy(std::move(codes));
            },
            arg("weights"), arg("n_threads"))
        .def_prop_ro("n_products",
                     [](const LinearSpace& self) {
                         const Features& x = self.features();
                         return (x.is_sparse() ? x.indptr[x.n_rows] : x.n_rows * x.n_features) * self.stride();
                     })
        .def_prop_ro("has_line", [](const LinearSpace& self) { return self.structure().has_line_slope() && self.structure().n_table() == 0; })
        .def("max_marginals", &max_marginals, arg("chain"), arg("weights"))
        .def("k_best", &k_best, arg("chain"), arg("weights"), arg("example"), arg("k"));

    nb::class_<ScoreLine>(m, "ScoreLine")
        .def(
            "__init__",
            [](ScoreLine* self, std::shared_ptr<LinearSpace> on) {
                if (!on->structure().has_line_slope() || on->structure().n_table() != 0)
                    throw std::invalid_argument("this structure has no slope along a line of scores.");
                new (self) ScoreLine(on);
            },
            arg("space"), nb::keep_alive<1, 2>())
        .def(
            "evaluate",
            [](ScoreLine& self, Array1<float> w, int n_threads) {
                require_length("weights", w.shape(0), self.space().n_weights());
                nb::gil_scoped_release release;
                self.evaluate(w.data(), workers(n_threads));
            },
            arg("weights"), arg("n_threads"))
        .def("move_anchor", &ScoreLine::move_anchor, arg("t"), nb::call_guard<nb::gil_scoped_release>())
        .def(
            "slope",
            [](const ScoreLine& self, double t, OptionalDoubles sample_weight, int n_threads) {
                if (sample_weight) require_length("sample_weight", sample_weight->shape(0), self.space().n_examples());
                nb::gil_scoped_release release;
                return self.slope(t, data_or_null(sample_weight), workers(n_threads));
            },
            arg("t"), arg("sample_weight").none(), arg("n_threads"))
        .def(
            "cut",
            [](const ScoreLine& self, double t, OptionalDoubles sample_weight, int n_threads) {
                if (sample_weight) require_length("sample_weight", sample_weight->shape(0), self.space().n_examples());
                ReducedCut cut;
                {
                    nb::gil_scoped_release release;
                    cut = self.cut(t, data_or_null(sample_weight), workers(n_threads));
                }
                return nb::make_tuple(cut.loss, to_numpy(std::move(cut.sum)), cut.n_planes);
            },
            arg("t"), arg("sample_weight").none(), arg("n_threads"));
}
