#include "symbols.h"

#include <algorithm>
#include <string>
#include <unordered_map>

namespace dovetail {

namespace {

constexpr uint32_t kSurrogates = 0xD800, kBehindSurrogates = 0xE000, kEnd = 0x110000;

}  // namespace

Alphabet::Alphabet(const std::vector<Ranges> &given) : classes(given.size()) {
    // Where a class begins or ends; the class behind the last one is that of all characters.
    std::vector<std::pair<uint32_t, uint32_t>> edges;
    const auto all = static_cast<uint32_t>(given.size());
    for (const uint32_t code : {0u, kSurrogates, kBehindSurrogates, kEnd}) edges.emplace_back(code, all);
    for (uint32_t at = 0; at < all; ++at)
        for (const auto &[low, high] : given[at]) {
            edges.emplace_back(low, at);
            edges.emplace_back(high + 1, at);
        }
    std::sort(edges.begin(), edges.end());
    std::string in(given.size() + 1, 0);  // whether the characters from here on are in a class
    std::unordered_map<std::string, size_t> known;
    uint32_t start = 0;
    for (const auto &[code, at] : edges) {
        if (in[all] && code > start) {
            const auto [found, is_new] = known.try_emplace(in, symbols.size());
            if (is_new) {
                symbols.emplace_back();
                for (uint32_t one = 0; one < all; ++one)
                    if (in[one]) classes[one].add(found->second);
            }
            symbols[found->second].emplace_back(start, code - 1);
        }
        in[at] ^= 1;
        start = code;
    }
}

}  // namespace dovetail
