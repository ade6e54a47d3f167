// An open hash table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace dovetail {

/// At most half full, so a look reads one place or two, which matters where the places are many and far from the cache.
/// A `Slot` says whether it is taken (explicit operator bool) and its hash().
template <class Slot> class Table {
  public:
    size_t size() const { return count_; }

    /// The slot with this hash for which `same(slot)` holds, or null.
    template <class Same> Slot *find(uint64_t hash, Same same) {
        if (slots_.empty()) return nullptr;
        for (size_t at = place(hash); slots_[at]; at = (at + 1) & mask())
            if (same(slots_[at])) return &slots_[at];
        return nullptr;
    }

    Slot &add(Slot slot) {
        if (count_ * 2 >= slots_.size()) grow();
        ++count_;
        return put(std::move(slot));
    }

    void remove(Slot *slot) {
        size_t at = static_cast<size_t>(slot - slots_.data());
        --count_;
        // What was put behind it for want of room moves up.
        for (size_t next = (at + 1) & mask(); slots_[next]; next = (next + 1) & mask()) {
            const size_t wanted = place(slots_[next].hash());
            if (((next - wanted) & mask()) < ((next - at) & mask())) continue;
            slots_[at] = std::move(slots_[next]);
            at = next;
        }
        slots_[at] = {};
    }

    template <class Visit> void each(Visit visit) const {
        for (const Slot &slot : slots_)
            if (slot) visit(slot);
    }

    template <class Test> void erase_if(Test test) {
        std::vector<Slot> old(slots_.size());
        old.swap(slots_);
        count_ = 0;
        for (Slot &slot : old) {
            if (!slot || test(slot)) continue;
            ++count_;
            put(std::move(slot));
        }
    }

  private:
    static constexpr size_t kFirst = 8;

    size_t mask() const { return slots_.size() - 1; }
    size_t place(uint64_t hash) const { return (hash ^ hash >> 32) & mask(); }  // `mix` tells more in the upper half

    Slot &put(Slot slot) {
        size_t at = place(slot.hash());
        while (slots_[at]) at = (at + 1) & mask();
        return slots_[at] = std::move(slot);
    }

    void grow() {
        std::vector<Slot> old(slots_.empty() ? kFirst : slots_.size() * 2);
        old.swap(slots_);
        for (Slot &slot : old)
            if (slot) put(std::move(slot));
    }

    std::vector<Slot> slots_;
    size_t count_ = 0;
};

}  // namespace dovetail
