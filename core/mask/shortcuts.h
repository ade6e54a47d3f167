// The shortcuts of the mask walk. A store may go without any of them, for tests and measurements: its masks are the same.
#pragma once

#include <array>
#include <cstdint>

namespace dovetail {

enum class Shortcut : uint32_t {
    KnownSuffix,      // a walk is over where a known mask came by the same bytes
    InsideCharacter,  // known suffixes are looked for inside a character that a call follows, too
    Siblings,         // a known suffix is taken at once for the siblings of a node that had one
    CharacterRun,     // tokens made of the characters of a loop or a count are looked up
    WholeSubtree,     // a subtree made of the characters of a loop is taken at once
    ByteOnly,         // a lone stack that only takes bytes moves without the rest of the machinery
    SharedBases,      // large masks are kept as differences from others
};

inline constexpr std::array kShortcutNames{"known_suffix",  "inside_character", "siblings",    "character_run",
                                           "whole_subtree", "byte_only",        "shared_bases"};

struct Shortcuts {
    uint32_t bits = (1u << kShortcutNames.size()) - 1;

    bool has(Shortcut one) const { return bits >> static_cast<uint32_t>(one) & 1; }
};

}  // namespace dovetail
