#include "solvers/plane_cache.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "solvers/float_vectors.hpp"

namespace maxmargin {

namespace {
constexpr int64_t examples_per_chunk = 64;
constexpr size_t most_reserved = 16;
}

PlaneCache::PlaneCache(std::shared_ptr<const PlaneSpace> space, int capacity, bool keeps_vectors)
    : space_(std::move(space)),
      capacity_(static_cast<size_t>(capacity)),
      keeps_vectors_(keeps_vectors),
      n_weights_(static_cast<size_t>(space_->n_weights())),
      scratch_(space_->scratch()),
      caches_(space_->n_examples()) {}

void PlaneCache::write_vector(int64_t example, size_t entry) {
    if (!keeps_vectors_) return;
    ExampleCache& cache = caches_[example];
    cache.vectors.resize(cache.entries.size() * n_weights_);
    double* psi = cache.vectors.data() + entry * n_weights_;
    std::fill_n(psi, n_weights_, 0.0);
    const Entry& added = cache.entries[entry];
    space_->add(static_cast<int32_t>(example), cache.code(added), added.loss, 1.0, psi, *scratch_);
}

template <class Scalar>
double PlaneCache::product(const ExampleCache& cache, size_t entry, const Scalar* w) const {
    return dot(cache.vectors.data() + entry * n_weights_, w, n_weights_);
}

// Puts a code in the place of an entry's; codes of another length (sparse vectors) are laid out anew.
void PlaneCache::replace(ExampleCache& cache, Entry& entry, Code code) {
    if (code.size() == entry.length) {
        std::copy(code.begin(), code.end(), cache.codes.begin() + entry.begin);
        return;
    }
    std::vector<int32_t> codes;
    for (Entry& other : cache.entries) {
        const Code kept = &other == &entry ? code : cache.code(other);
        other.begin = static_cast<uint32_t>(codes.size());
        other.length = static_cast<uint32_t>(kept.size());
        codes.insert(codes.end(), kept.begin(), kept.end());
    }
    cache.codes.swap(codes);
}

PlaneBatch PlaneCache::planes() const {
    PlaneBatch all;
    for (size_t i = 0; i < caches_.size(); ++i)
        for (const Entry& entry : caches_[i].entries) all.add(static_cast<int32_t>(i), entry.loss, caches_[i].code(entry));
    return all;
}

void PlaneCache::drop_unused(int64_t age) {
    for (ExampleCache& cache : caches_) {
        const auto is_old = [&](const Entry& entry) { return n_cuts_ - entry.last_cut > age; };
        if (std::none_of(cache.entries.begin(), cache.entries.end(), is_old)) continue;
        // In place: codes only ever move towards the front.
        size_t n_kept = 0;
        uint32_t end = 0;
        for (const Entry& entry : cache.entries) {
            if (is_old(entry)) continue;
            Entry moved = entry;
            std::copy_n(cache.codes.begin() + entry.begin, entry.length, cache.codes.begin() + end);
            if (keeps_vectors_) {
                const auto from = cache.vectors.begin() + (&entry - cache.entries.data()) * static_cast<std::ptrdiff_t>(n_weights_);
                std::copy_n(from, n_weights_, cache.vectors.begin() + static_cast<std::ptrdiff_t>(n_kept * n_weights_));
            }
            moved.begin = end;
            end += entry.length;
            cache.entries[n_kept++] = moved;
        }
        n_planes_ -= static_cast<int64_t>(cache.entries.size() - n_kept);
        cache.entries.resize(n_kept);
        cache.codes.resize(end);
        if (keeps_vectors_) cache.vectors.resize(n_kept * n_weights_);
    }
}

void PlaneCache::insert(const PlaneBatch& planes) {
    ++tick_;
    for (int64_t k = 0; k < planes.size(); ++k) {
        if (k % examples_per_chunk == 0) heartbeat();
        ExampleCache& cache = caches_[planes.examples[k]];
        const Code code = planes.code(k);
        const double loss = planes.losses[k];
        const auto same = std::find_if(cache.entries.begin(), cache.entries.end(), [&](const Entry& entry) {
            const Code other = cache.code(entry);
            return entry.loss == loss && std::equal(code.begin(), code.end(), other.begin(), other.end());
        });
        if (same != cache.entries.end()) {
            same->last_used = tick_;
            same->last_cut = n_cuts_;
            continue;
        }
        if (cache.entries.size() < capacity_) {
            if (cache.entries.empty()) {
                // Codes of one example mostly have one length: room for all at once instead of by doubling, if they are not many.
                const size_t room = std::min(capacity_, most_reserved);
                cache.entries.reserve(room);
                cache.codes.reserve(room * code.size());
                if (keeps_vectors_) cache.vectors.reserve(room * n_weights_);
            }
            const auto begin = static_cast<uint32_t>(cache.codes.size());
            cache.codes.insert(cache.codes.end(), code.begin(), code.end());
            cache.entries.push_back({loss, 0.0, 0.0, tick_, n_cuts_, begin, static_cast<uint32_t>(code.size()), false});
            write_vector(planes.examples[k], cache.entries.size() - 1);
            ++n_planes_;
            continue;
        }
        Entry& oldest = *std::min_element(cache.entries.begin(), cache.entries.end(),
                                          [](const Entry& a, const Entry& b) { return a.last_used < b.last_used; });
        replace(cache, oldest, code);
        oldest.loss = loss;
        oldest.last_used = tick_;
        oldest.last_cut = n_cuts_;
        oldest.has_anchor = false;
        write_vector(planes.examples[k], static_cast<size_t>(&oldest - cache.entries.data()));
    }
}

std::vector<int32_t> PlaneCache::improve(PlaneBatch& found, std::span<const int32_t> searched, const double* w) const {
    const auto scratch = space_->scratch();
    const auto value_of = [&](int32_t example, Code code, double loss) {
        double product = 0.0;
        space_->dots(example, std::span(&code, 1), std::span(&loss, 1), {w}, *scratch, &product);
        return loss - product;
    };
    const double norm = std::sqrt(std::inner_product(w, w + space_->n_weights(), w, 0.0));
    // The oracle adds up whole scores, of which a plane may be the small difference: all that is cached of the example tells their size.
    const auto exceeds = [&](double value, double other, int32_t example, double loss) {
        if (value - other <= 1e-9 * other) return false;
        double largest = 0.0;
        for (const Entry& entry : caches_[example].entries) {
            double square = 0.0;
            const Code code = caches_[example].code(entry);
            space_->inner(example, code, entry.loss, std::span(&code, 1), std::span(&entry.loss, 1), *scratch, &square);
            largest = std::max(largest, square);
        }
        return value - other > 1e-9 * other + PlaneSpace::rounding(loss, loss - value, norm, largest);
    };
    PlaneBatch better;
    std::vector<int32_t> improved;
    int64_t next = 0;
    for (const int32_t example : searched) {
        heartbeat();
        const bool is_found = next < found.size() && found.examples[next] == example;
        const double reached = is_found ? std::max(0.0, value_of(example, found.code(next), found.losses[next])) : 0.0;
        const Entry* best = nullptr;
        double best_value = reached;
        const ExampleCache& cache = caches_[example];
        for (size_t e = 0; e < cache.entries.size(); ++e) {
            const Entry& entry = cache.entries[e];
            const Code code = cache.code(entry);
            // Vectors round otherwise than what was found is valued by: they only tell which planes may be better.
            if (keeps_vectors_ && entry.loss - product(cache, e, w) <= best_value) continue;
            const double v = value_of(example, code, entry.loss);
            if (v > best_value && exceeds(v, reached, example, entry.loss)) {
                best_value = v;
                best = &entry;
            }
        }
        if (best) {
            improved.push_back(example);
            better.add(example, best->loss, caches_[example].code(*best));
        } else if (is_found) {
            better.add(example, found.losses[next], found.code(next));
        }
        next += is_found;
    }
    found = std::move(better);
    return improved;
}

template <class Store>
void PlaneCache::value_planes(WeightsView w, const Workers& workers, bool only_new, Store&& store) {
    struct Memory {
        std::unique_ptr<PlaneScratch> scratch;
        std::vector<Code> codes;
        std::vector<double> losses, products;
        std::vector<Entry*> entries;
    };
    const auto n = static_cast<int64_t>(caches_.size());
    std::vector<Memory> memories(std::max(workers.n_threads, 1));
    for (Memory& memory : memories) memory.scratch = space_->scratch();
    for_each_chunk((n + examples_per_chunk - 1) / examples_per_chunk, workers, [&](int64_t chunk, int thread) {
        Memory& memory = memories[thread];
        const int64_t end = std::min((chunk + 1) * examples_per_chunk, n);
        for (int64_t i = chunk * examples_per_chunk; i < end; ++i) {
            if (keeps_vectors_) {
                ExampleCache& cache = caches_[i];
                for (size_t e = 0; e < cache.entries.size(); ++e) {
                    if (only_new && cache.entries[e].has_anchor) continue;
                    store(cache.entries[e], w.exact ? product(cache, e, w.exact) : product(cache, e, w.rounded));
                }
                continue;
            }
            memory.codes.clear();
            memory.losses.clear();
            memory.entries.clear();
            for (Entry& entry : caches_[i].entries) {
                if (only_new && entry.has_anchor) continue;
                memory.codes.push_back(caches_[i].code(entry));
                memory.losses.push_back(entry.loss);
                memory.entries.push_back(&entry);
            }
            if (memory.codes.empty()) continue;
            memory.products.resize(memory.codes.size());
            space_->dots(static_cast<int32_t>(i), memory.codes, memory.losses, w, *memory.scratch, memory.products.data());
            for (size_t p = 0; p < memory.entries.size(); ++p) store(*memory.entries[p], memory.products[p]);
        }
    });
}

void PlaneCache::evaluate(WeightsView w, const Workers& workers) {
    value_planes(w, workers, false, [](Entry& entry, double product) { entry.at_w = product; });
}

void PlaneCache::evaluate_anchor(WeightsView anchor, const Workers& workers) {
    value_planes(anchor, workers, true, [](Entry& entry, double product) {
        entry.at_anchor = product;
        entry.has_anchor = true;
    });
}

void PlaneCache::move_anchor(double t) {
    for (ExampleCache& cache : caches_)
        for (Entry& entry : cache.entries) entry.at_anchor = (1.0 - t) * entry.at_anchor + t * entry.at_w;
}

int64_t PlaneCache::best_entry(const ExampleCache& cache, double t) {
    int64_t best = -1;
    double best_value = 0.0;
    for (size_t e = 0; e < cache.entries.size(); ++e)
        if (const double v = value(cache.entries[e], t); v > best_value) {
            best_value = v;
            best = static_cast<int64_t>(e);
        }
    return best;
}

template <class Use>
void PlaneCache::use_best(double t, Use&& use) {
    ++tick_;
    ++n_cuts_;
    for (size_t i = 0; i < caches_.size(); ++i) {
        if (i % examples_per_chunk == 0) heartbeat();
        if (const int64_t e = best_entry(caches_[i], t); e >= 0) {
            Entry& entry = caches_[i].entries[e];
            entry.last_used = tick_;
            entry.last_cut = n_cuts_;
            use(i, static_cast<size_t>(e));
        }
    }
}

PlaneBatch PlaneCache::best(double t) {
    PlaneBatch batch;
    use_best(t, [&](size_t i, size_t e) {
        const Entry& entry = caches_[i].entries[e];
        batch.add(static_cast<int32_t>(i), entry.loss, caches_[i].code(entry));
    });
    return batch;
}

double PlaneCache::add_best(double t, const double* sample_weight, double* sum) {
    double loss = 0.0;
    use_best(t, [&](size_t i, size_t e) {
        const double s = sample_weight ? sample_weight[i] : 1.0;
        const double* psi = caches_[i].vectors.data() + e * n_weights_;
        loss += s * caches_[i].entries[e].loss;
        for (size_t j = 0; j < n_weights_; ++j) sum[j] += s * psi[j];
    });
    return loss;
}

double PlaneCache::slope(double t, const double* sample_weight) const {
    double sum = 0.0;
    for (size_t i = 0; i < caches_.size(); ++i) {
        if (i % examples_per_chunk == 0) heartbeat();
        if (const int64_t e = best_entry(caches_[i], t); e >= 0) {
            const Entry& entry = caches_[i].entries[e];
            sum += (sample_weight ? sample_weight[i] : 1.0) * (entry.at_anchor - entry.at_w);
        }
    }
    return sum;
}

}  // namespace maxmargin
