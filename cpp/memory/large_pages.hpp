// An allocator for long vectors that are read at random places: few large pages instead of many small ones where the system has
// them. That saves a fault per page when they are first written, and misses when their addresses are looked up. All begin with a
// line of the cache, so that no load of a register touches two.
#pragma once

#include <cstddef>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace maxmargin {

template <class T>
struct LargePages {
    using value_type = T;

    LargePages() = default;
    template <class Other>
    LargePages(const LargePages<Other>&) {}

    T* allocate(size_t n) {
        void* memory = ::operator new(n * sizeof(T), alignment_of(n));
#if defined(__linux__)
        // Advice only: without large pages the memory is as good.
        if (n * sizeof(T) >= page) madvise(memory, n * sizeof(T), MADV_HUGEPAGE);
#endif
        return static_cast<T*>(memory);
    }
    void deallocate(T* memory, size_t n) { ::operator delete(memory, alignment_of(n)); }

    template <class Other>
    bool operator==(const LargePages<Other>&) const {
        return true;
    }

  private:
    static constexpr size_t page = size_t{2} << 20, line = 64;
    static std::align_val_t alignment_of(size_t n) { return std::align_val_t{n * sizeof(T) >= page ? page : line}; }
};

}  // namespace maxmargin
