#include "solvers/block.hpp"

#include <algorithm>
#include <numeric>
#include <type_traits>
#include <utility>

#include "qp/unspent.hpp"
#include "scores/fetch.hpp"

namespace maxmargin {

// Else a growing vector of blocks would copy them, out of their pool.
static_assert(std::is_nothrow_move_constructible_v<Block>);

size_t Block::find(Code wanted, double loss) const {
    size_t e = 0;
    for (; e < size(); ++e) {
        if (entries[e].loss == loss && is_same(wanted, code(e))) break;
    }
    return e;
}

bool Block::is_same(Code one, Code other) const {
    if (!has_span()) return std::equal(one.begin(), one.end(), other.begin(), other.end());
    return std::equal(one.begin() + span.begin, one.begin() + span.end, other.begin() + span.begin);
}

double Block::total() const { return std::accumulate(alpha.begin(), alpha.end(), 0.0); }

double Block::left() const { return unspent(budget - total(), size(), budget); }

int64_t Block::n_carriers() const {
    return std::count_if(alpha.begin(), alpha.end(), [](double a) { return a > 0.0; });
}

void Block::keep(Code code, double loss, const PlaneSpace& space, PlaneScratch& scratch) {
    const size_t n = size();
    entries.push_back({loss, 0, static_cast<uint32_t>(codes.size()), static_cast<uint32_t>(code.size())});
    codes.append(code);
    alpha.push_back(0.0);
    // The row stands where it belongs; the rows before it move apart by one entry each, the last one first.
    gram.resize((n + 1) * (n + 1));
    space.inner(parts, n, scratch, gram.data() + n * (n + 1));
    for (size_t p = n; p-- > 0;) {
        std::copy_backward(gram.begin() + p * n, gram.begin() + (p + 1) * n, gram.begin() + p * (n + 1) + n);
        gram[p * (n + 1) + n] = gram[n * (n + 1) + p];
    }
}

void Block::widen(Span to) {
    const Span before = span;
    span = {std::min(span.begin, to.begin), std::max(span.end, to.end)};
    may_part |= span.begin < before.begin || span.end > before.end;
}

void Block::fetch_data() const {
    fetch_all(parts.rows);
    fetch_all(parts.nodes);
    fetch_all(parts.weights);
    fetch_all(parts.ends);
    fetch_all(entries);
    fetch_all(alpha);
    fetch_all(gram);
    // Codes are compared within the span.
    if (size() == 0 || !has_span()) return;
    const size_t length = codes.size() / size();
    for (size_t e = 0; e < size(); ++e) fetch(codes.data() + e * length + span.begin, (span.end - span.begin) * sizeof(codes[0]));
}

void Block::erase(const std::vector<bool>& drop) {
    const size_t n = size();
    size_t n_kept = 0, n_products = 0, code_end = 0;
    for (size_t e = 0; e < n; ++e) {
        if (drop[e]) continue;
        const Entry entry = entries[e];
        std::copy_n(codes.begin() + entry.begin, entry.length, codes.begin() + code_end);
        for (size_t f = 0; f < n; ++f)
            if (!drop[f]) gram[n_products++] = gram[e * n + f];
        alpha[n_kept] = alpha[e];
        entries[n_kept++] = {entry.loss, entry.idle, static_cast<uint32_t>(code_end), entry.length};
        code_end += entry.length;
    }
    parts.erase(drop);
    may_part = true;
    entries.resize(n_kept);
    alpha.resize(n_kept);
    gram.resize(n_products);
    codes.resize(code_end);
}

}  // namespace maxmargin
