// The shortcuts of the mask walk, each of which a store may leave out: masks are the same, only later.
#pragma once

#include <cstdint>

namespace dovetail {

enum class Shortcut : uint32_t {
    Home = 1 << 0,
    Again = 1 << 1,
    Join = 1 << 2,
    Lift = 1 << 3,
    Cover = 1 << 4,
    Wide = 1 << 5,
    Leap = 1 << 6,
    Ahead = 1 << 7,
    Profile = 1 << 8,
    Reach = 1 << 9,
    Limits = 1 << 10,
    LimitLeap = 1 << 11,
    Siblings = 1 << 12,
    Bases = 1 << 13,
    Plain = 1 << 14,
    Foreign = 1 << 15,
    RunBase = 1 << 16,
    Relax = 1 << 17,
    Ticks = 1 << 18,
};

struct Shortcuts {
    uint32_t bits = 0xFFFFFFFF;
    bool has(Shortcut one) const { return bits & static_cast<uint32_t>(one); }
};

}  // namespace dovetail
