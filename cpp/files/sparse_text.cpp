#include "files/sparse_text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <system_error>

#include "threads/parallel.hpp"

namespace maxmargin {
namespace {

constexpr std::size_t shown_bytes = 40;  // of a wrong token in a message

bool is_blank(char c) { return c == ' ' || c == '\t'; }

// A token as a message shows it: quoted, printable ASCII only, of bounded length.
std::string quoted(std::string_view token) {
    constexpr char hex[] = "0123456789abcdef";
    std::string out = "'";
    for (char c : token.substr(0, shown_bytes)) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte >= 0x20 && byte < 0x7f) {
            out += c;
        } else {
            out += "\\x";
            out += hex[byte >> 4];
            out += hex[byte & 15];
        }
    }
    return out + (token.size() > shown_bytes ? "...'" : "'");
}

// The whole token as a number, or nothing. A leading '+' is allowed, as in '+1'.
template <class Number>
std::optional<Number> whole_number(std::string_view token) {
    if (token.size() > 1 && token[0] == '+' && token[1] != '-') token.remove_prefix(1);
    Number number{};
    const char* end = token.data() + token.size();
    const auto [stop, error] = std::from_chars(token.data(), end, number);
    if (error != std::errc{} || stop != end) return std::nullopt;
    return number;
}

class Parser {
public:
    Parser(std::string_view text, const SparseTextOptions& options) : text_(text), options_(options) {}

    SparseText parse() {
        // Every feature has a colon, so this bounds the rows and features; pages never touched cost nothing.
        const auto lines = static_cast<std::size_t>(std::count(text_.begin(), text_.end(), '\n')) + 1;
        const auto colons = static_cast<std::size_t>(std::count(text_.begin(), text_.end(), ':'));
        out_.targets.reserve(lines);
        out_.indptr.reserve(lines + 1);
        out_.indices.reserve(colons);
        out_.values.reserve(colons);
        out_.indptr.push_back(0);

        const char* position = text_.data();
        const char* const end = position + text_.size();
        while (position != end) {
            const auto left = static_cast<std::size_t>(end - position);
            const auto* newline = static_cast<const char*>(std::memchr(position, '\n', left));
            ++line_;
            heartbeat();
            parse_line(position, newline ? newline : end);
            position = newline ? newline + 1 : end;
        }
        return std::move(out_);
    }

private:
    void parse_line(const char* begin, const char* end) {
        line_begin_ = begin;
        if (end != begin && end[-1] == '\r') --end;
        if (begin == end) return;
        if (const void* comment = std::memchr(begin, '#', static_cast<std::size_t>(end - begin))) {
            end = static_cast<const char*>(comment);
        }
        const char* position = skip_blanks(begin, end);
        if (position == end) return;
        const std::string_view target = token_at(position, end);
        parse_target(target);
        position = skip_blanks(target.data() + target.size(), end);
        position = parse_qid(position, end);
        parse_features(position, end);
        out_.indptr.push_back(static_cast<std::int64_t>(out_.indices.size()));
    }

    void parse_target(std::string_view token) {
        if (options_.dialect == SparseDialect::svm_hmm) {
            const auto tag = whole_number<std::int32_t>(token);
            if (!tag || *tag < 1) fail(token, "an integer tag from 1 to 2147483647");
            out_.targets.push_back(*tag);
        } else {
            const auto target = whole_number<double>(token);
            if (!target || !std::isfinite(*target)) fail(token, "a finite number as target");
            out_.targets.push_back(*target);
        }
    }

    // Returns the place of the first feature.
    const char* parse_qid(const char* position, const char* end) {
        constexpr std::string_view prefix = "qid:";
        const std::string_view token = token_at(position, end);
        const bool is_first = out_.targets.size() == 1;
        if (token.substr(0, prefix.size()) != prefix) {
            if (options_.dialect == SparseDialect::svm_hmm) fail(token, "'qid:NUMBER' after the tag");
            if (!out_.qids.empty()) fail(token, "'qid:NUMBER' after the target, as on the lines before");
            return position;
        }
        if (!is_first && out_.qids.empty()) fail(token, "no qid, as on the lines before");
        const auto qid = whole_number<std::int64_t>(token.substr(prefix.size()));
        if (!qid) fail(token, "'qid:NUMBER' with a 64-bit integer");
        out_.qids.push_back(*qid);
        return skip_blanks(token.data() + token.size(), end);
    }

    void parse_features(const char* position, const char* end) {
        std::uint32_t previous = 0;
        const auto n_features = static_cast<std::uint32_t>(options_.n_features);
        while (position != end) {
            std::uint32_t feature = 0;
            const auto [colon, error] = std::from_chars(position, end, feature);
            if (error != std::errc{} || colon == end || *colon != ':' || feature <= previous ||
                feature > static_cast<std::uint32_t>(std::numeric_limits<std::int32_t>::max())) {
                fail_feature(token_at(position, end), previous);
            }
            double value = 0.0;
            const char* const digits = colon + 1;
            const char* stop = digits;
            if (digits != end && *digits >= '0' && *digits <= '9' && (digits + 1 == end || is_blank(digits[1]))) {
                value = *digits - '0';  // one digit: all there is in files of binary features
                ++stop;
            } else {
                stop = parse_value(token_at(position, end), digits, value);
            }
            if (feature <= n_features) {
                out_.indices.push_back(static_cast<std::int32_t>(feature - 1));
                out_.values.push_back(value);
            } else if (!options_.drop_extra_features) {
                fail(token_at(position, end), "features up to n_features = " + std::to_string(n_features));
            }
            previous = feature;
            position = skip_blanks(stop, end);
        }
    }

    const char* parse_value(std::string_view token, const char* digits, double& value) const {
        const char* const stop = token.data() + token.size();
        const auto number = whole_number<double>({digits, static_cast<std::size_t>(stop - digits)});
        if (!number || !std::isfinite(*number)) fail(token, "'feature:value' with a finite number as value");
        value = *number;
        return stop;
    }

    [[noreturn]] void fail_feature(std::string_view token, std::uint32_t previous) const {
        std::uint64_t feature = 0;
        const char* const end = token.data() + token.size();
        const auto [colon, error] = std::from_chars(token.data(), end, feature);
        const bool is_pair = colon != token.data() && colon != end && *colon == ':';
        std::string why;
        if (is_pair && (error != std::errc{} || feature > std::numeric_limits<std::int32_t>::max())) {
            why = " (the highest feature possible is 2147483647)";
        } else if (is_pair && previous == 0) {
            why = " (features count from 1)";
        } else if (is_pair) {
            why = " (features must ascend)";
        }
        fail(token, "'feature:value' with an integer feature above " + std::to_string(previous), why);
    }

    [[noreturn]] void fail(std::string_view token, const std::string& expected, const std::string& why = "") const {
        const std::string found = token.empty() ? "the end of the line" : quoted(token);
        throw SparseTextError(line_, static_cast<std::size_t>(token.data() - line_begin_) + 1,
                              "expected " + expected + ", found " + found + why + ".");
    }

    static const char* skip_blanks(const char* position, const char* end) {
        while (position != end && is_blank(*position)) ++position;
        return position;
    }

    static std::string_view token_at(const char* position, const char* end) {
        return {position, static_cast<std::size_t>(std::find_if(position, end, is_blank) - position)};
    }

    std::string_view text_;
    SparseTextOptions options_;
    SparseText out_;
    std::size_t line_ = 0;
    const char* line_begin_ = nullptr;
};

template <class Number>
void append(std::string& out, Number number) {
    char digits[32];
    const auto [stop, error] = std::to_chars(digits, digits + sizeof digits, number);
    out.append(digits, stop);
}

// Tags must look like integers: the shortest form of 125000000.0 is 1.25e+08.
void append_target(std::string& out, double target) {
    if (target >= 1.0 && target < 1e15 && target == std::floor(target)) {
        append(out, static_cast<std::int64_t>(target));
    } else {
        append(out, target);
    }
}

}  // namespace

SparseText parse_sparse_text(std::string_view text, const SparseTextOptions& options) {
    return Parser(text, options).parse();
}

template <class Real>
std::string format_sparse_text(std::span<const double> targets, std::span<const std::int64_t> qids,
                               std::span<const std::int64_t> indptr, std::span<const std::int32_t> indices,
                               std::span<const Real> values) {
    std::string out;
    out.reserve(indices.size() * 8 + targets.size() * 12);
    for (std::size_t row = 0; row < targets.size(); ++row) {
        heartbeat();
        append_target(out, targets[row]);
        if (!qids.empty()) {
            out += " qid:";
            append(out, qids[row]);
        }
        for (auto k = static_cast<std::size_t>(indptr[row]); k < static_cast<std::size_t>(indptr[row + 1]); ++k) {
            out += ' ';
            append(out, static_cast<std::int64_t>(indices[k]) + 1);
            out += ':';
            append(out, values[k]);
        }
        out += '\n';
    }
    return out;
}

template std::string format_sparse_text<float>(std::span<const double>, std::span<const std::int64_t>,
                                               std::span<const std::int64_t>, std::span<const std::int32_t>,
                                               std::span<const float>);
template std::string format_sparse_text<double>(std::span<const double>, std::span<const std::int64_t>,
                                                std::span<const std::int64_t>, std::span<const std::int32_t>,
                                                std::span<const double>);

}  // namespace maxmargin
