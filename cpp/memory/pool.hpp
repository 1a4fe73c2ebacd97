// Memory for many short vectors that grow, shrink and end together: those of one solver's blocks.
//
// A general allocator keeps a header before each of them, and hands back each by itself. Here pieces are multiples of 16 bytes cut
// from large chunks, a piece that is given back serves the next vector of its size, and chunks are returned when the pool ends.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

namespace maxmargin {

// Not for several threads at once.
class Pool {
  public:
    static constexpr size_t unit = 16, longest = 1024;

    Pool() = default;
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    // The bytes that are set aside for so many.
    static size_t room(size_t n_bytes) { return n_bytes <= longest ? (n_bytes + unit - 1) / unit * unit : n_bytes; }

    void* take(size_t n_bytes) {
        if (n_bytes > longest) return ::operator new(n_bytes);
        Free*& first = free_[(n_bytes + unit - 1) / unit];
        if (first) return std::exchange(first, first->next);
        const size_t size = room(n_bytes);
        if (left_ < size) add_chunk();
        left_ -= size;
        return std::exchange(next_, next_ + size);
    }

    void give_back(void* piece, size_t n_bytes) noexcept {
        if (n_bytes > longest) return ::operator delete(piece);
        if (is_ending_) return;
        Free*& first = free_[(n_bytes + unit - 1) / unit];
        first = new (piece) Free{first};
    }

    // From now on pieces only come back, and need not be found again.
    void end() noexcept { is_ending_ = true; }

  private:
    struct Free {
        Free* next;
    };
    static constexpr size_t first_chunk = size_t{4} << 10, longest_chunk = size_t{1} << 20;

    void add_chunk() {
        const size_t size = chunks_.empty() ? first_chunk : std::min(2 * last_size_, longest_chunk);
        chunks_.emplace_back(new std::byte[size]);
        next_ = chunks_.back().get();
        left_ = last_size_ = size;
    }

    std::array<Free*, longest / unit + 1> free_{};
    std::vector<std::unique_ptr<std::byte[]>> chunks_;
    std::byte* next_ = nullptr;
    size_t left_ = 0, last_size_ = 0;
    bool is_ending_ = false;
};

// A vector of plain values in a pool, or outside of any. A copy belongs to the pool of what it is copied to, a new one to none.
template <class T>
class PoolVector {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= Pool::unit);
    // A piece is given back by its capacity, which leaves less than a unit of it unused: room() is the same for both.

  public:
    using value_type = T;
    using iterator = T*;
    using const_iterator = const T*;

    PoolVector() = default;
    explicit PoolVector(Pool* pool) : pool_(pool) {}
    PoolVector(const PoolVector& other) { assign(other.begin(), other.end()); }
    PoolVector(PoolVector&& other) noexcept { swap(other); }
    PoolVector& operator=(const PoolVector& other) {
        if (this != &other) assign(other.begin(), other.end());
        return *this;
    }
    PoolVector& operator=(PoolVector&& other) noexcept {
        swap(other);
        return *this;
    }
    ~PoolVector() { release(); }

    size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    T* data() { return data_; }
    const T* data() const { return data_; }
    T* begin() { return data_; }
    T* end() { return data_ + size_; }
    const T* begin() const { return data_; }
    const T* end() const { return data_ + size_; }
    T& operator[](size_t k) { return data_[k]; }
    const T& operator[](size_t k) const { return data_[k]; }
    T& front() { return data_[0]; }
    const T& front() const { return data_[0]; }
    T& back() { return data_[size_ - 1]; }
    const T& back() const { return data_[size_ - 1]; }

    void clear() { size_ = 0; }
    void pop_back() { --size_; }
    void push_back(const T& item) {
        const T copy = item;  // it may be one of ours
        grow(size_ + size_t{1});
        data_[size_++] = copy;
    }
    // New values are 0.
    void resize(size_t n) {
        grow(n);
        for (size_t k = size_; k < n; ++k) data_[k] = T{};
        size_ = static_cast<uint32_t>(n);
    }
    template <class Items>
    void append(const Items& items) {
        const size_t n = size_ + items.size();
        grow(n);
        std::copy(items.begin(), items.end(), data_ + size_);
        size_ = static_cast<uint32_t>(n);
    }
    template <class Iterator>
    void assign(Iterator first, Iterator last) {
        const auto n = static_cast<size_t>(last - first);
        size_ = 0;
        reserve(n);
        std::copy(first, last, data_);
        size_ = static_cast<uint32_t>(n);
    }
    void reserve(size_t n) {
        if (n <= capacity_) return;
        if (n > UINT32_MAX) throw std::length_error("a vector of more than 2^32 values.");
        const size_t n_bytes = Pool::room(n * sizeof(T));
        T* const data = static_cast<T*>(pool_ ? pool_->take(n_bytes) : ::operator new(n_bytes));
        std::copy_n(data_, size_, data);
        release();
        data_ = data;
        capacity_ = static_cast<uint32_t>(std::min<size_t>(n_bytes / sizeof(T), UINT32_MAX));
    }
    void swap(PoolVector& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
        std::swap(pool_, other.pool_);
    }

  private:
    void release() noexcept {
        if (!data_) return;
        if (pool_) pool_->give_back(data_, capacity_ * sizeof(T));
        else ::operator delete(data_);
    }
    void grow(size_t n) {
        if (n > capacity_) reserve(std::max(n, 2 * size_t{capacity_}));
    }

    T* data_ = nullptr;
    uint32_t size_ = 0, capacity_ = 0;
    Pool* pool_ = nullptr;
};

}  // namespace maxmargin
