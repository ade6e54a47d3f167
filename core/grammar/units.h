// Units by their content.
#pragma once

#include <functional>
#include <string_view>

#include "grammar/rule.h"
#include "base/table.h"

namespace dovetail {

class Units {
  public:
    Unit *find(std::string_view key) {
        const uint64_t hash = hash_of(key);
        const Slot *slot = units_.find(hash, [&](const Slot &one) { return one.of_key == hash && one.unit->key == key; });
        return slot ? slot->unit : nullptr;
    }
    void add(Unit &unit) { units_.add({hash_of(unit.key), &unit}); }
    void remove(const Unit &unit) {
        if (Slot *slot = units_.find(hash_of(unit.key), [&](const Slot &one) { return one.unit == &unit; })) units_.remove(slot);
    }

  private:
    struct Slot {
        uint64_t of_key = 0;
        Unit *unit = nullptr;

        explicit operator bool() const { return unit; }
        uint64_t hash() const { return of_key; }
    };

    static uint64_t hash_of(std::string_view key) { return std::hash<std::string_view>{}(key); }

    Table<Slot> units_;
};

}  // namespace dovetail
