// Memory for what lives as long as one automaton: most are small and many come and go.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

namespace dovetail {

/// Pieces of memory of one size, which those that are gone leave to those that come.
class Chunks {
  public:
    using Chunk = std::unique_ptr<std::byte[]>;
#ifdef __SANITIZE_ADDRESS__
    static constexpr size_t kSize = 0;  // each object gets memory of its own, so that no fault inside a chunk is missed
#else
    static constexpr size_t kSize = 2048;
#endif

    Chunk take() {
        if (free_.empty()) return Chunk(new std::byte[kSize]);
        Chunk chunk = std::move(free_.back());
        free_.pop_back();
        return chunk;
    }
    void give(Chunk chunk) {
        if (free_.size() < kMost) free_.push_back(std::move(chunk));
    }

  private:
    static constexpr size_t kMost = 1024;  // that are kept

    std::vector<Chunk> free_;
};

/// Hands out memory that goes back as a whole. Who makes an object there that has something to end ends it, see Owned.
class Heap {
  public:
    explicit Heap(Chunks &chunks) : chunks_(chunks) {}
    ~Heap() {
        for (Chunks::Chunk &chunk : used_) chunks_.give(std::move(chunk));
    }
    Heap(const Heap &) = delete;
    Heap &operator=(const Heap &) = delete;

    /// Room for as many objects, which are not made.
    template <class T> T *room(size_t count) {
        static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
        if (count == 0) return nullptr;
        const size_t bytes = count * sizeof(T);
        if (bytes > Chunks::kSize) {
            large_.emplace_back(new std::byte[bytes]);
            return reinterpret_cast<T *>(large_.back().get());
        }
        left_ -= left_ % alignof(T);
        if (bytes > left_) {
            used_.push_back(chunks_.take());
            left_ = Chunks::kSize;
        }
        std::byte *at = used_.back().get() + (Chunks::kSize - left_);
        left_ -= bytes;
        return reinterpret_cast<T *>(at);
    }
    template <class T> std::span<const T> copy(std::span<const T> from) {
        T *to = room<T>(from.size());
        std::uninitialized_copy(from.begin(), from.end(), to);
        return {to, from.size()};
    }
    template <class T, class... Args> T *make(Args &&...args) { return new (room<T>(1)) T(std::forward<Args>(args)...); }

  private:
    Chunks &chunks_;
    std::vector<Chunks::Chunk> used_;
    std::vector<std::unique_ptr<std::byte[]>> large_;
    size_t left_ = 0;  // of the last chunk
};

/// An object in a heap.
struct Ended {
    template <class T> void operator()(T *object) const { object->~T(); }
};
template <class T> using Owned = std::unique_ptr<T, Ended>;

}  // namespace dovetail
