// What the encoder knows of tables of spellings, and the words that they spell as a trie.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "nodes.h"

namespace dovetail {

/// A table of spellings, as far as it was asked for.
struct Spellings {
    struct Letter {
        char raw = 0;
        uint32_t callee = kNone;
    };
    PyObject *table;
    char lead;
    Letter letters[128] = {};
    std::unordered_map<std::string, uint32_t> others;  // by the letters that are left out
};

/// One place in the trie of some words.
struct WordPlace {
    bool listed = false;
    std::map<char, uint32_t> forks;
};

inline std::vector<WordPlace> word_trie(nb::handle words) {
    std::vector<WordPlace> trie(1);
    each(words, [&](nb::handle word) {
        uint32_t at = 0;
        for (const char c : text_of(word)) {
            if (static_cast<uint8_t>(c) >= 128) throw InputError("only ASCII characters are spelled");
            const auto [fork, fresh] = trie[at].forks.try_emplace(c, static_cast<uint32_t>(trie.size()));
            at = fork->second;
            if (fresh) trie.emplace_back();
        }
        trie[at].listed = true;
    });
    return trie;
}

}  // namespace dovetail
