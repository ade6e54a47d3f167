// Small things that every part of the core uses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

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

using Ranges = std::vector<std::pair<uint32_t, uint32_t>>;  // inclusive

inline constexpr uint32_t kUnbounded = UINT32_MAX;
inline constexpr uint32_t kNone = UINT32_MAX;

/// The counter of a frame: how many repetitions may still come, and how many still must.
/// A text with a token budget keeps the tokens that are left in `need`, and the high bit says that the current
/// token has been counted. Where members come in any order, `left` is the number of the set of those that were there.
struct Counter {
    uint32_t left = 0;
    uint32_t need = 0;

    bool operator==(const Counter &) const = default;
};

inline uint64_t mix(uint64_t h, uint64_t v) {
    h ^= v + 0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2);
    return h * 0xff51afd7ed558ccdull;
}

}  // namespace dovetail
