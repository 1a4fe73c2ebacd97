#include "solvers/block.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "scores/fetch.hpp"

namespace maxmargin {

size_t Block::find(Code wanted, double loss) const {
    size_t e = 0;
    for (; e < size(); ++e) {
        const Code other = code(e);
        if (entries[e].loss == loss && std::equal(wanted.begin(), wanted.end(), other.begin(), other.end())) break;
    }
    return e;
}

double Block::total() const { return std::accumulate(alpha.begin(), alpha.end(), 0.0); }

double Block::left() const {
    // Rounding of the sum must not make a spent budget look like one with mass left.
    const double left = budget - total();
    return left <= 1e-15 * static_cast<double>(size()) * budget ? 0.0 : left;
}

int64_t Block::n_carriers() const {
    return std::count_if(alpha.begin(), alpha.end(), [](double a) { return a > 0.0; });
}

void Block::keep(Code code, double loss, const PlaneSpace& space, PlaneScratch& scratch) {
    const size_t n = size();
    entries.push_back({loss, 0, static_cast<uint32_t>(codes.size()), static_cast<uint32_t>(code.size())});
    codes.insert(codes.end(), code.begin(), code.end());
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
}

void Block::erase(const std::vector<bool>& drop) {
    const size_t n = size();
    std::vector<Entry> kept_entries;
    std::vector<double> kept_alpha, kept_gram;
    std::vector<int32_t> kept_codes;
    for (size_t e = 0; e < n; ++e) {
        if (drop[e]) continue;
        kept_entries.push_back({entries[e].loss, entries[e].idle, static_cast<uint32_t>(kept_codes.size()), entries[e].length});
        kept_codes.insert(kept_codes.end(), code(e).begin(), code(e).end());
        kept_alpha.push_back(alpha[e]);
        for (size_t f = 0; f < n; ++f)
            if (!drop[f]) kept_gram.push_back(gram[e * n + f]);
    }
    parts.erase(drop);
    may_part = true;
    entries.swap(kept_entries);
    alpha.swap(kept_alpha);
    gram.swap(kept_gram);
    codes.swap(kept_codes);
}

}  // namespace maxmargin
