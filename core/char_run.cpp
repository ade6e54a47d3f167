#include "char_run.h"

#include <algorithm>

namespace dovetail {

namespace {

constexpr size_t kMaxKnown = 192;

}  // namespace

bool holds_only(std::string_view text, const HoledSet &chars) {
    uint8_t utf8 = 0;
    for (size_t at = 0; at < text.size(); ++at) {
        const auto byte = static_cast<uint8_t>(text[at]);
        if (utf8 == 0 && !chars.begins(byte)) return false;
        utf8 = utf8_next(utf8, byte);
        if (utf8 == kUtf8Bad || (utf8 == 0 && byte >= 0x80 && chars.misses(last_code(text.substr(0, at + 1))))) return false;
    }
    return utf8 == 0;
}

const CharRun &CharRuns::of(const HoledSet &chars, bool spaced) {
    const auto same = [&](const auto &runs) { return runs->chars == chars && runs->spaced == spaced; };
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
    for (Children first = vocab_.children(child.node); first.next();) begin(first.node, first.byte, made);
    bytes_ += made.memory();
    return made;
}

void CharRuns::trim() {
    if (known_.size() <= kMaxKnown) return;
    for (; known_.size() > kMaxKnown / 2; known_.pop_back()) bytes_ -= known_.back()->memory();
}

/// Looks at a node before which only the characters stand, none of them begun.
void CharRuns::begin(uint32_t node, uint8_t byte, CharRun &out) const {
    if (!out.chars.begins(byte)) return out.add_way(node, byte);
    const auto &nodes = vocab_.nodes();
    each_word({nodes[node].first, nodes[nodes[node].end].first}, [&](uint32_t word, uint64_t bits) { out.inside[word] |= bits; });
    collect(node, utf8_next(0, byte), out.chars.has(byte), out);
}

/// Takes out what is below a node and leaves the characters; before the node stand these only. `utf8` is the place inside
/// the last of them, which is `sure` to be one of them however it ends.
void CharRuns::collect(uint32_t node, uint8_t utf8, bool sure, CharRun &out) const {
    const auto &nodes = vocab_.nodes();
    if (sure && (nodes[node].utf8_ok >> utf8 & 1) && vocab_.below()[node].within(out.chars)) return;
    for (Children child = vocab_.children(node); child.next();) {
        const uint32_t c = child.node;
        const uint8_t next = utf8 == 0 && child.byte < 0x80 ? 0 : utf8_next(utf8, child.byte);
        const bool goes_on = utf8 == 0 ? out.chars.begins(child.byte) : next != kUtf8Bad;
        const bool missing = utf8 != 0 && next == 0 && !sure && out.chars.misses(last_code(vocab_.path(c)));
        if (!goes_on || missing) {
            // Inside a character nothing else can come.
            if (utf8 == 0 || missing) out.add_way(c, child.byte);
            each_word({nodes[c].first, nodes[child.end].first}, [&](uint32_t word, uint64_t bits) { out.inside[word] &= ~bits; });
        } else if (child.end > c + 1) {
            collect(c, next, next == 0 || (utf8 == 0 ? out.chars.has(child.byte) : sure), out);
        }
    }
}

}  // namespace dovetail
