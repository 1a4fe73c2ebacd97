// One example, several blocks.
//
// Where outputs differ from the truth in places that do not touch, they combine: any choice within one stretch goes with any
// choice within another, and Δ and ψ are sums over the stretches. So the dual needs no mass on each combination. A distribution
// over the choices of every stretch, each with the whole budget C_i, stands for the product of these distributions, which is
// one over outputs with the same Σ α Δ and the same w: D is the same, and as good a lower bound. Where a new output reaches
// across two stretches, they become one: a joint distribution with the same marginals has no more planes than both together.
// Where the planes that joined them have left, they part again, each with its marginals.
#include "solvers/components.hpp"

#include <algorithm>
#include <utility>

namespace maxmargin {

// Leaves the plane's components in memory.spans; each lies in exactly one block afterwards.
void WorkingSets::make_room(int64_t example, Code code) {
    std::vector<Block>& own = blocks_[example];
    split_blocks(own);
    space_->components(static_cast<int32_t>(example), code, {0, static_cast<int64_t>(code.size())}, memory_->spans);
    for (const Span& span : memory_->spans) {
        Block* home = nullptr;
        for (size_t b = 0; b < own.size();) {
            if (!own[b].span.touches(span)) {
                ++b;
                continue;
            }
            if (!home) {
                home = &own[b++];
                continue;
            }
            merge(*home, own[b]);
            own.erase(own.begin() + static_cast<std::ptrdiff_t>(b));
        }
        if (home) home->widen(span);
        else own.emplace_back(static_cast<int32_t>(example), budgets_[example], span, memory_->pool);
    }
    // A block that grew may touch another now.
    for (size_t a = 0; a < own.size(); ++a)
        for (size_t b = a + 1; b < own.size();) {
            if (!own[a].span.touches(own[b].span)) {
                ++b;
                continue;
            }
            merge(own[a], own[b]);
            own.erase(own.begin() + static_cast<std::ptrdiff_t>(b));
            b = a + 1;
        }
    for (Block& block : own) space_->cover(block.example, block.span, block.parts);
}

void WorkingSets::split_blocks(std::vector<Block>& own) {
    std::vector<Span>& spans = memory_->stretches;
    if (std::none_of(own.begin(), own.end(), [&](Block& block) { return stretches(block, spans); })) return;
    std::vector<Block> pieces;
    for (Block& block : own) {
        if (!stretches(block, spans)) {
            pieces.push_back(std::move(block));
            continue;
        }
        for (const Span& span : spans) append_stretch(block, span, pieces);
        n_planes_ -= static_cast<int64_t>(block.size());
    }
    own = std::move(pieces);
}

// The stretches that the planes of a block are made of; returns whether they are several, or shorter than the block.
bool WorkingSets::stretches(Block& block, std::vector<Span>& spans) const {
    if (!block.may_part) return false;
    std::vector<Span>&all = memory_->all_spans, &of_plane = memory_->plane_spans;
    all.clear();
    for (size_t p = 0; p < block.size(); ++p) {
        space_->components(block.example, block.code(p), block.span, of_plane);
        all.insert(all.end(), of_plane.begin(), of_plane.end());
    }
    std::sort(all.begin(), all.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
    spans.clear();
    for (const Span& span : all) {
        if (!spans.empty() && spans.back().touches(span)) spans.back().end = std::max(spans.back().end, span.end);
        else spans.push_back(span);
    }
    block.may_part = spans.size() != 1 || spans[0].end - spans[0].begin < block.span.end - block.span.begin;
    return block.may_part && !spans.empty();
}

// The marginal distribution of a block's planes on one of its stretches.
void WorkingSets::append_stretch(const Block& block, Span span, std::vector<Block>& pieces) {
    Block piece(block.example, block.budget, span, memory_->pool);
    piece.quiet = block.quiet;
    std::vector<int32_t> code;
    std::vector<Span> differs;
    for (size_t p = 0; p < block.size(); ++p) {
        const double loss = space_->combine(block.example, block.code(p), span, {}, code);
        space_->components(block.example, code, span, differs);
        if (differs.empty()) continue;
        const size_t known = piece.find(code, loss);
        if (known < piece.size()) {
            piece.alpha[known] += block.alpha[p];
            continue;
        }
        space_->write(piece.example, code, loss, piece.parts, *memory_->scratch);
        piece.keep(code, loss, *space_, *memory_->scratch);
        piece.alpha.back() = block.alpha[p];
    }
    space_->cover(piece.example, span, piece.parts);
    n_planes_ += static_cast<int64_t>(piece.size());
    pieces.push_back(std::move(piece));
}

// The carriers of both blocks, laid side by side along their budgets, meet in pairs: each pair becomes a plane with the mass they
// share. Planes without mass stay as they are.
void WorkingSets::merge(Block& into, const Block& other) {
    Block joint(into.example, into.budget, {std::min(into.span.begin, other.span.begin), std::max(into.span.end, other.span.end)}, memory_->pool);
    PlaneScratch& scratch = *memory_->scratch;
    const auto add = [&](Code code, double loss, double mass) {
        space_->write(joint.example, code, loss, joint.parts, scratch);
        joint.keep(code, loss, *space_, scratch);
        joint.alpha.back() = mass;
    };
    const auto next_carrier = [](const Block& block, size_t p) {
        while (p < block.size() && block.alpha[p] <= 0.0) ++p;
        return p;
    };
    size_t p = next_carrier(into, 0), q = next_carrier(other, 0);
    double left_of_p = p < into.size() ? into.alpha[p] : 0.0, left_of_q = q < other.size() ? other.alpha[q] : 0.0;
    std::vector<int32_t> code;
    while (p < into.size() || q < other.size()) {
        const bool has_p = p < into.size(), has_q = q < other.size();
        const double mass = has_p && has_q ? std::min(left_of_p, left_of_q) : has_p ? left_of_p : left_of_q;
        if (has_p && has_q) {
            const double loss = space_->combine(joint.example, other.code(q), other.span, into.code(p), code);
            add(code, loss, mass);
        } else if (has_p) {
            add(into.code(p), into.entries[p].loss, mass);
        } else {
            add(other.code(q), other.entries[q].loss, mass);
        }
        if (has_p && (left_of_p -= mass) <= 0.0) {
            p = next_carrier(into, p + 1);
            left_of_p = p < into.size() ? into.alpha[p] : 0.0;
        }
        if (has_q && (left_of_q -= mass) <= 0.0) {
            q = next_carrier(other, q + 1);
            left_of_q = q < other.size() ? other.alpha[q] : 0.0;
        }
    }
    for (const Block* block : {static_cast<const Block*>(&into), &other})
        for (size_t e = 0; e < block->size(); ++e)
            if (block->alpha[e] <= 0.0 && !joint.has(block->code(e), block->entries[e].loss)) add(block->code(e), block->entries[e].loss, 0.0);
    n_planes_ += static_cast<int64_t>(joint.size()) - static_cast<int64_t>(into.size() + other.size());
    into = std::move(joint);
}

}  // namespace maxmargin
