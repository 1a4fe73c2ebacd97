// Sparse examples as text, one a line, in the two dialects of the SVM-light family:
//
//     TARGET [qid:NUMBER] FEATURE:VALUE FEATURE:VALUE ...  # comment
//
//   svm-hmm    TARGET is an integer tag from 1; every line has a qid, which changes between sequences
//   svmlight   TARGET is any finite number; either all lines have a qid or none has
//
// Features are integers from 1 in ascending order, values finite. Blank lines and comments are skipped; lines end
// with LF or CRLF. Anything else is refused with its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace maxmargin {

enum class SparseDialect { svm_hmm, svmlight };

// Rows in compressed form: row r holds indices[indptr[r] .. indptr[r + 1]), ascending and zero-based (feature - 1).
struct SparseText {
    std::vector<double> targets;
    std::vector<std::int64_t> qids;  // one per row, or none at all (svmlight without qid)
    std::vector<std::int64_t> indptr;
    std::vector<std::int32_t> indices;
    std::vector<double> values;
};

// what() is "expected ..., found ...", without the place; line and column count from 1, columns in bytes.
class SparseTextError : public std::runtime_error {
public:
    SparseTextError(std::size_t line_, std::size_t column_, const std::string& message)
        : std::runtime_error(message), line(line_), column(column_) {}

    std::size_t line;
    std::size_t column;
};

struct SparseTextOptions {
    SparseDialect dialect = SparseDialect::svmlight;
    std::int32_t n_features = std::numeric_limits<std::int32_t>::max();
    bool drop_extra_features = false;  // features above n_features: an error, or left out
};

// Throws SparseTextError, and std::bad_alloc; reads nothing outside of text.
SparseText parse_sparse_text(std::string_view text, const SparseTextOptions& options);

// The inverse: the shortest digits that read back as the same numbers. Before: indptr has targets.size() + 1 entries
// within indices and values, qids is empty or one per row, all numbers are finite. Real is float or double.
template <class Real>
std::string format_sparse_text(std::span<const double> targets, std::span<const std::int64_t> qids,
                               std::span<const std::int64_t> indptr, std::span<const std::int32_t> indices,
                               std::span<const Real> values);

}  // namespace maxmargin
