// What a set of characters makes of the trie: a loop over them allows many tokens at once, and only where the others leave
// it there is something to walk.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "bases.h"
#include "vocab.h"

namespace dovetail {

inline constexpr int kManyChars = 26;  // in a loop; fewer leave it nearly everywhere

struct CharRun {
    HoledSet chars;
    bool spaced = false;         // behind a space, as words in a text
    RankMask inside;             // tokens that hold no other character; the last one may be unfinished
    std::vector<uint32_t> ways;  // nodes behind such a beginning that begin another character, or end it; sorted
    std::vector<uint8_t> bytes;  // of these, because most of them are never looked at

    void add_way(uint32_t node, uint8_t byte) {
        ways.push_back(node);
        bytes.push_back(byte);
    }
    size_t memory() const { return sizeof(*this) + chars.holes.size() * 8 + inside.size() * 8 + ways.capacity() * 5; }
};

/// Whether a text holds none but these characters, all of them whole.
bool holds_only(std::string_view text, const HoledSet &chars);

/// The runs of a few sets of characters: patterns use the same ones again and again.
class CharRuns {
  public:
    explicit CharRuns(const Vocab &vocab) : vocab_(vocab) {}

    const CharRun &of(const HoledSet &chars, bool spaced);
    /// Where they are many, forgets those that were not asked for lately; nobody may hold on to one then.
    void trim();
    size_t bytes() const { return bytes_; }

  private:
    void begin(uint32_t node, uint8_t byte, CharRun &out) const;
    void collect(uint32_t node, uint8_t utf8, bool sure, CharRun &out) const;

    const Vocab &vocab_;
    std::vector<std::unique_ptr<CharRun>> known_;  // the last one asked for comes first
    size_t bytes_ = 0;
};

}  // namespace dovetail
