// Units by their content.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "rule.h"

namespace dovetail {

/// Grammars have thousands of units, far apart in memory: a look that finds nothing reads one place of this table.
class Units {
  public:
    Unit *find(std::string_view key) const {
        if (entries_.empty()) return nullptr;
        const uint64_t hash = hash_of(key);
        for (size_t at = hash & mask();; at = (at + 1) & mask()) {
            const Entry &entry = entries_[at];
            if (!entry.unit || (entry.hash == hash && entry.unit->key == key)) return entry.unit;
        }
    }

    void add(Unit &unit) {
        if (count_ * 2 >= entries_.size()) grow();
        put({hash_of(unit.key), &unit});
        ++count_;
    }

    void remove(const Unit &unit) {
        if (entries_.empty()) return;
        size_t at = hash_of(unit.key) & mask();
        for (; entries_[at].unit != &unit; at = (at + 1) & mask())
            if (!entries_[at].unit) return;
        --count_;
        // What was put behind it for want of room moves up.
        for (size_t next = (at + 1) & mask(); entries_[next].unit; next = (next + 1) & mask()) {
            const size_t wanted = entries_[next].hash & mask();
            if (((next - wanted) & mask()) < ((next - at) & mask())) continue;
            entries_[at] = entries_[next];
            at = next;
        }
        entries_[at] = {};
    }

  private:
    struct Entry {
        uint64_t hash = 0;
        Unit *unit = nullptr;
    };

    static uint64_t hash_of(std::string_view key) { return std::hash<std::string_view>{}(key); }
    size_t mask() const { return entries_.size() - 1; }

    void put(const Entry &entry) {
        size_t at = entry.hash & mask();
        while (entries_[at].unit) at = (at + 1) & mask();
        entries_[at] = entry;
    }

    void grow() {
        std::vector<Entry> old(entries_.empty() ? 64 : entries_.size() * 2);
        old.swap(entries_);
        for (const Entry &entry : old)
            if (entry.unit) put(entry);
    }

    std::vector<Entry> entries_;  // half of them at most are taken
    size_t count_ = 0;
};

}  // namespace dovetail
