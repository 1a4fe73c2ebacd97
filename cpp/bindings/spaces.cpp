// Plane spaces for Python. Arrays are not copied: the bound objects keep them alive.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "bindings/checks.hpp"
#include "planes/diverse.hpp"
#include "planes/linear_space.hpp"
#include "planes/oracle.hpp"
#include "planes/score_line.hpp"
#include "planes/vector_space.hpp"
#include "scores/instruction_sets.hpp"
#include "scores/kernels.hpp"
#include "structures/chain.hpp"

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

void require_truth(const LinearSpace& space) {
    require(space.structure().has_truth(), "this space was made without true outputs: it can only predict.");
}

nb::ndarray<nb::numpy, double> max_marginals(const LinearSpace& space, Array1<double> w, int n_threads) {
    const WeightsView weights = view(space, w, std::nullopt);
    const Structure& structure = space.structure();
    require(structure.has_max_marginals(), "this structure has no search for max-marginals.");
    const int64_t n = space.n_examples(), k = structure.n_labels();
    const int64_t rows = n == 0 ? 0 : structure.rows(n - 1).end;
    std::vector<double> out(rows * k);
    {
        nb::gil_scoped_release release;
        for_each_chunk(n, workers(n_threads), [&](int64_t i, int) {
            space.with_scores(i, weights.exact, [&](PartScores<double> scores) { structure.max_marginals(i, scores, out.data() + structure.rows(i).begin * k); });
        });
    }
    return to_numpy(std::move(out), {static_cast<size_t>(rows), static_cast<size_t>(k)});
}

// The outputs that search(example, part scores, codes, values) finds for each example, with their values: all codes, all values, and how
// many there are of each example.
template <class Search>
nb::tuple several(const LinearSpace& space, const double* w, int n_threads, Search&& search) {
    const int64_t n = space.n_examples();
    std::vector<std::vector<int32_t>> codes(n);
    std::vector<std::vector<double>> values(n);
    {
        nb::gil_scoped_release release;
        for_each_chunk(n, workers(n_threads), [&](int64_t i, int) {
            space.with_scores(i, w, [&](PartScores<double> scores) { search(i, scores, codes[i], values[i]); });
        });
    }
    std::vector<int32_t> all_codes;
    std::vector<double> all_values;
    std::vector<int64_t> found(n);
    for (int64_t i = 0; i < n; ++i) {
        found[i] = static_cast<int64_t>(values[i].size());
        all_codes.insert(all_codes.end(), codes[i].begin(), codes[i].end());
        all_values.insert(all_values.end(), values[i].begin(), values[i].end());
    }
    return nb::make_tuple(to_numpy(std::move(all_codes)), to_numpy(std::move(all_values)), to_numpy(std::move(found)));
}

nb::tuple k_best(const LinearSpace& space, Array1<double> w, int64_t k, int n_threads) {
    const Structure& structure = space.structure();
    require(structure.has_k_best(), "this structure has no search for the k best outputs.");
    require(k >= 1, "k must be at least 1.");
    return several(space, view(space, w, std::nullopt).exact, n_threads,
                   [&](int64_t i, PartScores<double> scores, auto& codes, auto& values) { structure.k_best(i, scores, k, codes, values); });
}

// What outputs cost for being used before stays far from the end of double precision.
void check_strengths(const Structure& structure, std::span<const double> strengths) {
    constexpr double largest_cost = 1e200;
    require_amounts("strengths", strengths);
    if (strengths.empty()) return;
    double largest_weight = 0.0;
    for (int64_t i = 0; i < structure.n_examples(); ++i)
        for (int64_t place = 0; place < structure.code_length(i); ++place) largest_weight = std::max(largest_weight, structure.place_weight(i, place));
    require(*std::max_element(strengths.begin(), strengths.end()) * largest_weight <= largest_cost, "strengths times the weights of places must be at most 1e200.");
}

nb::tuple diverse(const LinearSpace& space, Array1<double> w, Array1<double> strengths, int n_threads) {
    const Structure& structure = space.structure();
    require(structure.has_places(), "this structure has no labels of places.");
    check_strengths(structure, as_span(strengths));
    return several(space, view(space, w, std::nullopt).exact, n_threads, [&](int64_t i, PartScores<double> scores, auto& codes, auto& values) {
        const std::vector<std::vector<int32_t>> found = diverse_outputs(structure, i, scores, Search::plain, as_span(strengths));
        scores.same_table = true;
        for (const std::vector<int32_t>& code : found) {
            codes.insert(codes.end(), code.begin(), code.end());
            values.push_back(structure.score(i, scores, code.data()));
        }
    });
}

double add_changes(const LinearSpace& space, const PlaneBatch& before, const PlaneBatch& after, std::optional<Array1<double>> sample_weight,
                   Mutable1<double> total) {
    require_truth(space);
    require(space.rescaling() == Rescaling::margin, "changes of sums are for margin rescaling.");
    require_length("total", total.shape(0), space.n_weights());
    if (sample_weight) require_length("sample_weight", sample_weight->shape(0), space.n_examples());
    space.check_one_each(before);
    space.check_one_each(after);
    double change = 0.0;
    interruptible([&] { change = space.add_changes(before, after, data_or_null(sample_weight), total.data()); });
    return change;
}

VariantSource source_of(const std::string& name) {
    require(name == "diverse" || name == "m-best" || name == "random", "source must be 'diverse', 'm-best' or 'random', found '" + name + "'.");
    return name == "diverse" ? VariantSource::diverse : name == "m-best" ? VariantSource::m_best : VariantSource::random;
}

nb::tuple variants(const LinearSpace& space, Array1<int64_t> ids, Array1<double> w, const std::string& source, Array1<double> strengths, uint64_t seed,
                   int n_threads) {
    const WeightsView weights = view(space, w, std::nullopt);
    require_truth(space);
    require_numbers_of("example", as_span(ids), space.n_examples());
    const Structure& structure = space.structure();
    check_strengths(structure, as_span(strengths));
    VariantOptions options{source_of(source), {strengths.data(), strengths.data() + strengths.shape(0)}, seed};
    require(structure.has_places() && space.rescaling() == Rescaling::margin, "this structure has no labels of places, or its slacks are rescaled.");
    require(options.source != VariantSource::m_best || structure.has_k_best(), "this structure has no search for the k best outputs.");
    require(options.source != VariantSource::random || structure.has_free_places(), "some labels never follow each other: places cannot be relabelled at random.");
    Variants found;
    {
        nb::gil_scoped_release release;
        found = space.variants(as_span(ids), weights.exact, options, workers(n_threads));
    }
    nb::list planes;
    for (PlaneBatch& batch : found.planes) planes.append(std::move(batch));
    return nb::make_tuple(planes, to_numpy(std::move(found.diversity)), found.most);
}

// A model's own search, asked with the numbers of examples and the scale of the weights.
class CallbackOracle final : public Oracle {
  public:
    explicit CallbackOracle(nb::callable search) : search_(std::move(search)) {}

    PlaneBatch search(std::span<const int64_t> ids) override {
        nb::gil_scoped_acquire gil;
        return nb::cast<PlaneBatch>(search_(to_numpy(std::vector<int64_t>(ids.begin(), ids.end())), scale_));
    }
    // Python knows by itself.
    int64_t n_examples() const override { return std::numeric_limits<int64_t>::max(); }

  private:
    nb::callable search_;
};

void bind_oracles(nb::module_& m) {
    nb::class_<Oracle>(m, "Oracle").def(
        "search",
        [](Oracle& self, Array1<int64_t> ids) {
            require_numbers_of("example", as_span(ids), self.n_examples());
            nb::gil_scoped_release release;
            return self.search(as_span(ids));
        },
        arg("ids"));
    nb::class_<LinearOracle, Oracle>(m, "LinearOracle")
        .def(
            "__init__",
            [](LinearOracle* self, std::shared_ptr<LinearSpace> space, Array1<double> w, std::optional<Array1<float>> rounded, bool plain, int n_threads) {
                const WeightsView weights = view(*space, w, rounded);
                require_truth(*space);
                new (self) LinearOracle(space, weights, plain ? Search::plain : space->search_kind(), workers(n_threads));
            },
            arg("space"), arg("weights").noconvert(), arg("rounded").none().noconvert(), arg("plain"), arg("n_threads"), nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(),
            nb::keep_alive<1, 4>());
    nb::class_<FoundPlanes, Oracle>(m, "FoundPlanes")
        .def(
            "__init__",
            [](FoundPlanes* self, const PlaneSpace& space, const PlaneBatch& planes) {
                space.check(planes);
                new (self) FoundPlanes(planes, space.n_examples());
            },
            arg("space"), arg("planes"));
    nb::class_<CallbackOracle, Oracle>(m, "CallbackOracle").def(nb::init<nb::typed<nb::callable, PlaneBatch(nb::ndarray<nb::numpy, int64_t, nb::ndim<1>>, double)>>(), arg("search"));
    nb::class_<KBestOracle, Oracle>(m, "KBestOracle")
        .def(
            "__init__",
            [](KBestOracle* self, std::shared_ptr<LinearSpace> space, Array1<double> w, int64_t k) {
                const WeightsView weights = view(*space, w, std::nullopt);
                require_truth(*space);
                require(space->structure().has_k_best(), "this structure has no search for the k best outputs.");
                require(k >= 1, "k must be at least 1.");
                new (self) KBestOracle(space, weights.exact, k);
            },
            arg("space"), arg("weights").noconvert(), arg("k"), nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>());
}

// What a file held: planes as arrays, which may be anything. Whether codes are outputs only their space can tell.
PlaneBatch batch_of(Array1<int32_t> examples, Array1<double> losses, Array1<int32_t> codes, Array1<int64_t> offsets, Array1<double> alpha) {
    const auto n = static_cast<int64_t>(examples.shape(0));
    require_length("losses", losses.shape(0), n);
    require_length("alpha", alpha.shape(0), n);
    require_length("offsets", offsets.shape(0), n + 1);
    require(offsets(0) == 0 && offsets(n) == static_cast<int64_t>(codes.shape(0)), "offsets must begin at 0 and end where codes do.");
    require(std::ranges::is_sorted(as_span(offsets)), "offsets must not fall.");
    require(std::ranges::none_of(as_span(examples), [](int32_t example) { return example < 0; }), "examples must not be negative.");
    require_amounts("losses", as_span(losses));
    require_amounts("alpha", as_span(alpha));
    const auto copied = [](const auto& array) { return std::vector(array.data(), array.data() + array.shape(0)); };
    return {copied(examples), copied(losses), copied(codes), copied(offsets), copied(alpha)};
}

void bind_batches(nb::module_& m) {
    nb::class_<PlaneBatch>(m, "PlaneBatch")
        .def(nb::init<>())
        .def_static("from_arrays", &batch_of, arg("examples").noconvert(), arg("losses").noconvert(), arg("codes").noconvert(), arg("offsets").noconvert(),
                    arg("alpha").noconvert())
        .def("__len__", &PlaneBatch::size)
        .def(
            "add_vector",
            [](PlaneBatch& self, int32_t example, double loss, Array1<int32_t> indices, Array1<double> values) {
                require_length("values", values.shape(0), static_cast<int64_t>(indices.shape(0)));
                require(example >= 0, "example must not be negative.");
                for (size_t j = 0; j < indices.shape(0); ++j)
                    if (indices(j) < 0 || (j > 0 && indices(j) <= indices(j - 1))) throw std::invalid_argument("indices must ascend from 0.");
                self.add(example, loss, VectorSpace::encode(as_span(indices), as_span(values)));
            },
            arg("example"), arg("loss"), arg("indices"), arg("values"))
        .def(
            "take",
            [](PlaneBatch& self, const PlaneBatch& other, Array1<int64_t> places) {
                require(&self != &other, "a batch cannot take from itself.");
                require_numbers_of("plane", as_span(places), other.size());
                for (const int64_t k : as_span(places)) self.add(other.examples[k], other.losses[k], other.code(k));
            },
            arg("other"), arg("places"))
        .def(
            "extend",
            [](PlaneBatch& self, const PlaneBatch& other) {
                require(&self != &other, "a batch cannot be extended by itself.");
                self.append(other);
            },
            arg("other"))
        .def("examples", [](const PlaneBatch& self) { return to_numpy(std::vector(self.examples)); })
        .def("losses", [](const PlaneBatch& self) { return to_numpy(std::vector(self.losses)); })
        .def("alpha", [](const PlaneBatch& self) { return to_numpy(std::vector(self.alpha)); })
        .def("values",
             [](const PlaneBatch& self) -> std::optional<decltype(to_numpy(std::vector<double>{}))> {
                 if (!self.has_values()) return std::nullopt;
                 return to_numpy(std::vector(self.values));
             })
        .def("codes", [](const PlaneBatch& self) { return to_numpy(std::vector(self.codes)); })
        .def("offsets", [](const PlaneBatch& self) { return to_numpy(std::vector(self.offsets)); })
        .def("code", [](const PlaneBatch& self, int64_t k) {
            if (k < 0 || k >= self.size()) throw nb::index_error();
            const Code code = self.code(k);
            return to_numpy(std::vector<int32_t>(code.begin(), code.end()));
        });
}

// In order, on this thread.
template <class Work>
void for_each_plane(const PlaneSpace& space, const PlaneBatch& batch, Work&& work) {
    constexpr int64_t planes_per_poll = 64;
    interruptible([&] {
        const auto scratch = space.scratch();
        for (int64_t k = 0; k < batch.size(); ++k) {
            if (k % planes_per_poll == 0) heartbeat();
            work(k, *scratch);
        }
    });
}

// Products and sums of single planes, and the product of two, which is for tests.
void bind_arithmetic(nb::class_<PlaneSpace>& space) {
    space
        .def(
            "dots",
            [](const PlaneSpace& self, const PlaneBatch& batch, Array1<double> w, std::optional<Array1<float>> rounded) {
                const WeightsView weights = view(self, w, rounded);
                self.check(batch);
                std::vector<double> out(batch.size());
                for_each_plane(self, batch, [&](int64_t k, PlaneScratch& scratch) {
                    const Code code = batch.code(k);
                    self.dots(batch.examples[k], std::span(&code, 1), std::span(&batch.losses[k], 1), weights, scratch, &out[k]);
                });
                return to_numpy(std::move(out));
            },
            arg("batch"), arg("weights").noconvert(), arg("rounded").none().noconvert() = nb::none())
        .def(
            "add",
            [](const PlaneSpace& self, const PlaneBatch& batch, Array1<double> coefficients, Mutable1<double> w) {
                require_length("coefficients", coefficients.shape(0), batch.size());
                require_length("weights", w.shape(0), self.n_weights());
                self.check(batch);
                for_each_plane(self, batch, [&](int64_t k, PlaneScratch& scratch) {
                    self.add(batch.examples[k], batch.code(k), batch.losses[k], coefficients(k), w.data(), scratch);
                });
            },
            arg("batch"), arg("coefficients"), arg("weights").noconvert())
        .def(
            "vectors",
            [](const PlaneSpace& self, const PlaneBatch& batch) {
                self.check(batch);
                const auto n_weights = static_cast<size_t>(self.n_weights());
                std::vector<double> out(static_cast<size_t>(batch.size()) * n_weights);
                for_each_plane(self, batch, [&](int64_t k, PlaneScratch& scratch) {
                    self.add(batch.examples[k], batch.code(k), batch.losses[k], 1.0, out.data() + static_cast<size_t>(k) * n_weights, scratch);
                });
                return to_numpy(std::move(out), {static_cast<size_t>(batch.size()), n_weights});
            },
            arg("batch"))
        .def(
            "inner",
            [](const PlaneSpace& self, const PlaneBatch& batch, int64_t i, int64_t j) {
                if (std::min(i, j) < 0 || std::max(i, j) >= batch.size()) throw nb::index_error();
                if (batch.examples[i] != batch.examples[j]) throw std::invalid_argument("planes of two examples have no stored product.");
                self.check(batch);
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
    m.def("instruction_sets", &instruction_sets);
    m.def("use_instruction_set", &use_instruction_set, arg("name"));
    m.def(
        "padded_labels",
        [](int n_labels) {
            require_between("n_labels", n_labels, 1, most_labels);
            return padded_labels(n_labels);
        },
        arg("n_labels"));
    bind_batches(m);

    nb::class_<PlaneSpace> space(m, "PlaneSpace");
    space.def_prop_ro("n_examples", &PlaneSpace::n_examples)
        .def_prop_ro("n_weights", &PlaneSpace::n_weights)
        .def_prop_ro("has_components", &PlaneSpace::has_components)
        .def_prop_ro("rescales_slacks", [](const PlaneSpace& self) { return self.rescaling() == Rescaling::slack; });
    bind_arithmetic(space);

    nb::class_<VectorSpace, PlaneSpace>(m, "VectorSpace")
        .def(
            "__init__",
            [](VectorSpace* self, int64_t n_examples, int64_t n_weights, const std::string& rescaling) {
                require_between("n_examples", n_examples, 0, std::numeric_limits<int32_t>::max());
                require_between("n_weights", n_weights, 0, std::numeric_limits<int32_t>::max());
                new (self) VectorSpace(n_examples, n_weights, rescaling_named(rescaling));
            },
            arg("n_examples"), arg("n_weights"), arg("rescaling"));

    nb::class_<LinearSpace, PlaneSpace>(m, "LinearSpace")
        .def(
            "__init__",
            [](LinearSpace* self, const Features& features, std::shared_ptr<Structure> structure, const std::string& rescaling) {
                const int64_t n = structure->n_examples();
                const int64_t rows = n == 0 ? 0 : structure->rows(n - 1).end;
                if (rows != features.n_rows)
                    throw std::invalid_argument("the features have " + std::to_string(features.n_rows) + " rows but the structure " + std::to_string(rows) + ".");
                const Rescaling rescaled = rescaling_named(rescaling);
                require(rescaled == Rescaling::margin || !structure->has_truth() || structure->has_slack_search(),
                        "the structure has no search for slack rescaling: a chain needs a loss_step, graphs few labellings.");
                new (self) LinearSpace(features, structure, rescaled);
            },
            arg("features"), arg("structure"), arg("rescaling"), nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
        .def_prop_ro("stride", &LinearSpace::stride)
        .def_prop_ro("has_row_labels", [](const LinearSpace& self) { return self.structure().row_labels().has_value(); })
        .def_prop_ro("n_rows", [](const LinearSpace& self) { return self.features().n_rows; })
        .def_prop_ro("decoding_work", &LinearSpace::decoding_work)
        .def(
            "separate",
            [](const LinearSpace& self, Array1<int64_t> ids, Array1<double> w, std::optional<Array1<float>> rounded, int n_threads) {
                const WeightsView weights = view(self, w, rounded);
                require_truth(self);
                require_numbers_of("example", as_span(ids), self.n_examples());
                nb::gil_scoped_release release;
                return self.separate(as_span(ids), weights, self.search_kind(), workers(n_threads), 1.0, true);
            },
            arg("ids"), arg("weights").noconvert(), arg("rounded").none().noconvert(), arg("n_threads"))
        .def(
            "separate_and_sum",
            [](const LinearSpace& self, Array1<double> w, std::optional<Array1<float>> rounded, OptionalDoubles sample_weight, int n_threads) {
                const WeightsView weights = view(self, w, rounded);
                require_truth(self);
                if (sample_weight) require_length("sample_weight", sample_weight->shape(0), self.n_examples());
                ReducedCut cut;
                {
                    nb::gil_scoped_release release;
                    cut = self.separate_and_sum(weights, data_or_null(sample_weight), workers(n_threads));
                }
                return nb::make_tuple(cut.loss, to_numpy(std::move(cut.sum)), cut.n_planes);
            },
            arg("weights").noconvert(), arg("rounded").none().noconvert(), arg("sample_weight").none(), arg("n_threads"))
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
            arg("weights").noconvert(), arg("n_threads"))
        .def_prop_ro("n_products",
                     [](const LinearSpace& self) {
                         const Features& x = self.features();
                         return (x.is_sparse() ? x.indptr[x.n_rows] : x.n_rows * x.n_features) * self.stride();
                     })
        .def_prop_ro("has_line", [](const LinearSpace& self) { return self.structure().has_line_slope() && self.structure().n_table() == 0; })
        .def("max_marginals", &max_marginals, arg("weights").noconvert(), arg("n_threads"))
        .def("k_best", &k_best, arg("weights").noconvert(), arg("k"), arg("n_threads"))
        .def_prop_ro("has_places", [](const LinearSpace& self) { return self.structure().has_places() && self.rescaling() == Rescaling::margin; })
        .def("variants", &variants, arg("ids"), arg("weights").noconvert(), arg("source"), arg("strengths"), arg("seed"), arg("n_threads"))
        .def("add_changes", &add_changes, arg("before"), arg("after"), arg("sample_weight").none(), arg("total").noconvert())
        .def("diverse", &diverse, arg("weights").noconvert(), arg("strengths"), arg("n_threads"));

    bind_oracles(m);

    nb::class_<ScoreLine>(m, "ScoreLine")
        .def(
            "__init__",
            [](ScoreLine* self, std::shared_ptr<LinearSpace> on) {
                require_truth(*on);
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
            arg("weights").noconvert(), arg("n_threads"))
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
