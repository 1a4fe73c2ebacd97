// Asks for memory that will be read soon.
#pragma once

#include <cstddef>
#include <cstdint>

namespace maxmargin {

inline void fetch(const void* at, size_t n_bytes) {
#if defined(__GNUC__)
    constexpr size_t line = 64;
    const size_t before = reinterpret_cast<uintptr_t>(at) % line;
    for (size_t k = 0; k < before + n_bytes; k += line) __builtin_prefetch(static_cast<const char*>(at) - before + k);
#else
    (void)at, (void)n_bytes;
#endif
}

template <class Items>
void fetch_all(const Items& items) {
    fetch(items.data(), items.size() * sizeof(items[0]));
}

}  // namespace maxmargin
