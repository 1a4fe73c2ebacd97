// Random numbers that are the same on every platform, which the standard library's shuffle does not promise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace maxmargin {

// SplitMix64 (Steele, Lea and Flood 2014).
struct Random {
    uint64_t state;
    uint64_t next() {
        uint64_t z = (state += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    // 0 … n − 1, n < 2³².
    uint64_t below(uint64_t n) { return ((next() >> 32) * n) >> 32; }

    template <class Item>
    void shuffle(std::span<Item> items) {
        for (size_t k = items.size(); k > 1; --k) std::swap(items[k - 1], items[below(k)]);
    }
};

}  // namespace maxmargin
