// What the encoder knows of tables of spellings, and the words that they spell as a trie.
#pragma once

#include <array>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiled.h"

namespace dovetail {

/// What grammars have asked of a table of spellings; the table owns it. Every object of every schema asks for dozens of
/// letters, and where other code ran before, each step to one through objects of Python waits for memory.
struct SpellingTable {
    struct Letter {
        char raw = 0;
        Compiled rule;
    };
    char lead = 0;
    std::string plain;  // code of the characters that may stand as they are
    Letter letters[128];
    Compiled others[129];  // all characters but this letter; behind the letters, but none

    static constexpr const char *kName = "dovetail.SpellingTable";

    static SpellingTable *of(nb::handle table) {
        const nb::handle owned = ir().spellings_compiled(table);
        return owned.is_none() ? nullptr : static_cast<SpellingTable *>(PyCapsule_GetPointer(owned.ptr(), kName));
    }
    static SpellingTable *make(nb::handle table) {
        auto *made = new SpellingTable;
        ir().spellings_compiled.set(table, owned_by_python(made, kName));
        return made;
    }
};

/// A table of spellings in the grammar at hand.
struct Spellings {
    PyObject *table;
    SpellingTable *kept;
    std::array<uint32_t, 128> letters;  // callees
    std::array<uint32_t, 129> others;
    std::unordered_map<std::string, uint32_t> rare;  // all characters but these, which are several

    Spellings(PyObject *table, SpellingTable *kept) : table(table), kept(kept) {
        letters.fill(kNone);
        others.fill(kNone);
    }
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
