// A lock for many readers or one writer.
#pragma once

#include <atomic>
#include <mutex>
#include <shared_mutex>

namespace dovetail {

/// A writer that waits goes before readers that come after it: std::shared_mutex alone would let them pass forever.
class Lock {
  public:
    void lock() {
        writers_.fetch_add(1, std::memory_order_relaxed);
        gate_.lock();
        mutex_.lock();
    }
    void unlock() {
        mutex_.unlock();
        gate_.unlock();
        writers_.fetch_sub(1, std::memory_order_relaxed);
    }
    void lock_shared() {
        if (writers_.load(std::memory_order_relaxed)) {
            const std::lock_guard behind(gate_);
            mutex_.lock_shared();
        } else {
            mutex_.lock_shared();
        }
    }
    void unlock_shared() { mutex_.unlock_shared(); }

  private:
    std::shared_mutex mutex_;
    std::mutex gate_;
    std::atomic<int> writers_ = 0;  // that wait or write
};

}  // namespace dovetail
