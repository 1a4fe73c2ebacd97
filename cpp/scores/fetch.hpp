// Asks for memory that will be read soon.
#pragma once

#include <cstddef>

namespace maxmargin {

inline void fetch(const void* at, size_t n_bytes) {
#if defined(__GNUC__)
    for (size_t k = 0; k < n_bytes; k += 64) __builtin_prefetch(static_cast<const char*>(at) + k);
#else
    (void)at, (void)n_bytes;
#endif
}

template <class Items>
void fetch_all(const Items& items) {
    fetch(items.data(), items.size() * sizeof(items[0]));
}

}  // namespace maxmargin
