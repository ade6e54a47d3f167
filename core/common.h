// Small things that every part of the core uses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace dovetail {

/// A budget of size, depth or work ran out; Python turns it into LimitError.
struct LimitError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The caller's input makes no sense; Python turns it into GrammarError or VocabularyError.
struct InputError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A matcher was used against its rules; Python turns it into MatcherError.
struct MisuseError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

inline constexpr uint32_t kUnbounded = UINT32_MAX;
inline constexpr uint32_t kNone = UINT32_MAX;

/// The counter of a frame: how many repetitions may still come, and how many still must.
/// A text with a token budget keeps the tokens that are left in `need`, and the high bit says that the current
/// token has been counted.
struct Counter {
    uint32_t left = 0;
    uint32_t need = 0;

    bool operator==(const Counter &) const = default;
};

/// Where a frame keeps a set of up to 64 members instead, its bits take the place of the two numbers.
inline uint64_t set_of(Counter c) { return static_cast<uint64_t>(c.need) << 32 | c.left; }
inline Counter counter_of(uint64_t set) { return {static_cast<uint32_t>(set), static_cast<uint32_t>(set >> 32)}; }

inline uint64_t mix(uint64_t h, uint64_t v) {
    h ^= v + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2);
    return h * 0xff51afd7ed558ccdull;
}

}  // namespace dovetail
