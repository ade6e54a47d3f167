// Finds the tokens made of a set of characters, once for each set.

#include "mask/char_run.h"

#include <algorithm>

namespace dovetail {

namespace {

constexpr size_t kMaxKnown = 192;

}  // namespace

bool holds_only(std::string_view text, const CharSet &chars) {
    uint8_t utf8 = 0;
    for (const char c : text) {
        const auto byte = static_cast<uint8_t>(c);
        if (utf8 == 0 && !chars.has(byte)) return false;
        utf8 = utf8_next(utf8, byte);
        if (utf8 == kUtf8Bad) return false;
    }
    return utf8 == 0;
}

const CharRun &CharRuns::of(const CharSet &chars, bool spaced) {
    const auto same = [&](const auto &run) { return run->chars == chars && run->spaced == spaced; };
    const auto known = std::find_if(known_.begin(), known_.end(), same);
    if (known != known_.end()) {
        std::rotate(known_.begin(), known, known + 1);
        return *known_.front();
    }
    known_.insert(known_.begin(), std::make_unique<CharRun>());
    CharRun &made = *known_.front();
    made.chars = chars;
    made.spaced = spaced;
    made.inside.resize(vocab_.rank_words());
    Children child = vocab_.children(0);
    if (spaced)
        while (child.next() && child.byte != ' ') continue;
    collect(child.node, 0, made);
    bytes_ += made.memory();
    return made;
}

void CharRuns::trim() {
    if (known_.size() <= kMaxKnown) return;
    for (; known_.size() > kMaxKnown / 2; known_.pop_back()) bytes_ -= known_.back()->memory();
}

/// Sorts what is below a node into what stays inside and what ends the run. `utf8` is the place inside a character.
void CharRuns::collect(uint32_t node, uint8_t utf8, CharRun &out) const {
    const auto &nodes = vocab_.nodes();
    const auto take = [&](uint32_t first, uint32_t last) {
        each_word({nodes[first].first, nodes[last].first}, [&](uint32_t word, uint64_t bits) { out.inside[word] |= bits; });
    };
    for (Children child = vocab_.children(node); child.next();) {
        const uint32_t c = child.node;
        const uint8_t next = utf8_next(utf8, child.byte);
        if (utf8 == 0 && !out.chars.has(child.byte)) {
            out.ends.push_back(c);
            out.bytes.push_back(child.byte);
        } else if (next == kUtf8Bad) {
            // Inside a character nothing else can come.
        } else if ((nodes[c].utf8_ok >> next & 1) && vocab_.below()[c].within(out.chars)) {
            take(c, child.end);
        } else {
            take(c, c + 1);
            collect(c, next, out);
        }
    }
}

}  // namespace dovetail
