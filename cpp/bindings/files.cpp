// Sparse text files for Python: bytes in, numpy arrays out, and back.
#include "files/sparse_text.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <string>
#include <utility>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"

using namespace nb::literals;

namespace {

maxmargin::SparseDialect dialect_named(std::string_view name) {
    if (name == "svm-hmm") return maxmargin::SparseDialect::svm_hmm;
    if (name == "svmlight") return maxmargin::SparseDialect::svmlight;
    throw nb::value_error("dialect must be 'svm-hmm' or 'svmlight'.");
}

nb::tuple parse(nb::bytes text, const std::string& name, std::string_view dialect, std::int32_t n_features,
                bool drop_extra_features) {
    if (n_features < 1) throw nb::value_error("n_features must be at least 1.");
    const maxmargin::SparseTextOptions options{dialect_named(dialect), n_features, drop_extra_features};
    const std::string_view view(text.c_str(), text.size());
    maxmargin::SparseText parsed;
    try {
        parsed = interruptible([&] { return maxmargin::parse_sparse_text(view, options); });
    } catch (const maxmargin::SparseTextError& error) {
        const std::string place = name + ":" + std::to_string(error.line) + ":" + std::to_string(error.column);
        throw nb::value_error((place + ": " + error.what()).c_str());
    }
    return nb::make_tuple(to_numpy(std::move(parsed.targets)), to_numpy(std::move(parsed.qids)),
                          to_numpy(std::move(parsed.indptr)), to_numpy(std::move(parsed.indices)),
                          to_numpy(std::move(parsed.values)));
}

template <class Real>
nb::bytes format(Array1<double> targets, Array1<std::int64_t> qids, Array1<std::int64_t> indptr,
                 Array1<std::int32_t> indices, Array1<Real> values) {
    bool is_consistent = indptr.size() == targets.size() + 1 && (qids.size() == 0 || qids.size() == targets.size()) &&
                         indices.size() == values.size() && indptr.data()[0] >= 0 &&
                         indptr.data()[targets.size()] <= static_cast<std::int64_t>(indices.size());
    for (std::size_t row = 0; is_consistent && row < targets.size(); ++row) {
        is_consistent = indptr.data()[row] <= indptr.data()[row + 1];
    }
    if (!is_consistent) throw nb::value_error("the arrays do not describe rows in compressed form.");
    const std::string text = interruptible([&] {
        return maxmargin::format_sparse_text<Real>(as_span(targets), as_span(qids), as_span(indptr), as_span(indices),
                                                   as_span(values));
    });
    return nb::bytes(text.data(), text.size());
}

}  // namespace

void bind_files(nb::module_& module) {
    module.def("parse_sparse_text", &parse, "text"_a, "name"_a, "dialect"_a, "n_features"_a = INT32_MAX,
               "drop_extra_features"_a = false,
               "Targets, qids, indptr, indices and values of svmlight or SVM-hmm text; name stands in messages.");
    const char* doc = "Rows in compressed form as svmlight text with one-based features; qids may be empty.";
    module.def("format_sparse_text", &format<double>, "targets"_a, "qids"_a, "indptr"_a, "indices"_a,
               "values"_a.noconvert(), doc);
    module.def("format_sparse_text", &format<float>, "targets"_a, "qids"_a, "indptr"_a, "indices"_a,
               "values"_a.noconvert(), doc);
}
