#include "symbols.h"

#include <algorithm>
#include <bit>
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
    std::u32string in(given.size() / 32 + 1, 0);  // the classes of the characters from here on, as bits
    std::unordered_map<std::u32string, size_t> known;
    uint32_t start = 0;
    for (const auto &[code, at] : edges) {
        if (in[all / 32] >> all % 32 & 1 && code > start) {
            const auto [found, is_new] = known.try_emplace(in, symbols.size());
            if (is_new) {
                symbols.emplace_back();
                for (uint32_t word = 0; word < in.size(); ++word)
                    for (uint32_t bits = in[word]; bits; bits &= bits - 1) {
                        const uint32_t one = word * 32 + static_cast<uint32_t>(std::countr_zero(bits));
                        if (one < all) classes[one].add(found->second);
                    }
            }
            symbols[found->second].emplace_back(start, code - 1);
        }
        in[at / 32] ^= 1u << at % 32;
        start = code;
    }
}

}  // namespace dovetail
