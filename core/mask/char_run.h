// Character runs: the tokens made of a set of characters, and the trie nodes where others end such a text. A loop over
// the characters takes the first at once, and walks only what follows the second.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "mask/shared_masks.h"
#include "vocabulary/vocab.h"

namespace dovetail {

inline constexpr int kManyChars = 26;  // in a run; fewer end nearly everywhere

struct CharRun {
    CharSet chars;
    bool spaced = false;         // after a space, as words in a text
    RankMask inside;             // tokens that hold no other character; the last one may be unfinished
    std::vector<uint32_t> ends;  // nodes after such a beginning that begin another character; sorted
    std::vector<uint8_t> bytes;  // of these, because most of them are never looked at

    size_t memory() const { return sizeof(*this) + inside.size() * 8 + ends.capacity() * 5; }
};

/// Whether a text holds none but these characters, all of them whole.
bool holds_only(std::string_view text, const CharSet &chars);

/// The runs of a few sets of characters: patterns use the same ones again and again.
class CharRuns {
  public:
    explicit CharRuns(const Vocab &vocab) : vocab_(vocab) {}

    const CharRun &of(const CharSet &chars, bool spaced);
    /// Where they are many, forgets those that were not asked for lately; nobody may hold on to one then.
    void trim();
    size_t bytes() const { return bytes_; }

  private:
    void collect(uint32_t node, uint8_t utf8, CharRun &out) const;

    const Vocab &vocab_;
    std::vector<std::unique_ptr<CharRun>> known_;  // the last one asked for comes first
    size_t bytes_ = 0;
};

}  // namespace dovetail
