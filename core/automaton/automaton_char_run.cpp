// Where characters lead from one state: by each byte of ASCII, and by all characters that one other byte begins.
#include <algorithm>

#include "mask/byte_only.h"

namespace dovetail {

namespace {

/// Looks whether all characters that a byte begins lead to `to`; null says that they lead nowhere.
class WholeLeads {
  public:
    explicit WholeLeads(const DState *to) : to_(to) {}

    bool arrives(const DState &from, uint8_t lead) { return go_on(from.next(lead), utf8_next(0, lead)); }

  private:
    using Place = std::pair<const DState *, uint8_t>;

    /// Inside a character.
    bool go_on(DState *at, uint8_t utf8) {
        if (!at) return !to_;
        if (std::find(whole_.begin(), whole_.end(), Place{at, utf8}) != whole_.end()) return true;
        at->owner->expand(*at);
        // Nothing else may come here: whole subtrees are taken for it.
        if (!only_takes_bytes(*at) || !goes_on_inside(*at)) return false;
        Place last{at, kUtf8Bad};  // most bytes lead where the one before them leads
        for (uint32_t b = 0x80; b < 0xC0; ++b) {
            const uint8_t next = utf8_next(utf8, static_cast<uint8_t>(b));
            DState *to = at->next(static_cast<uint8_t>(b));
            if (Place{to, next} == last) continue;
            last = {to, next};
            if (!(next == kUtf8Bad ? !to : next == 0 ? to == to_ : go_on(to, next))) return false;
        }
        whole_.emplace_back(at, utf8);
        return true;
    }

    const DState *to_;
    std::vector<Place> whole_;  // from where all characters arrive
};

}  // namespace

const CharSet &Automaton::chars_to(DState &d, const DState *to) {
    auto &known = extra(d).chars_to;
    const auto same = [&](const auto &one) { return one->first == to; };
    if (const auto at = std::find_if(known.begin(), known.end(), same); at != known.end()) return (*at)->second;
    CharSet chars;
    // A text with a token budget is entered byte by byte, never by subtrees.
    if (!d.counts_tokens) {
        for (uint8_t b = 0; b < 128; ++b)
            if (d.next(b) == to) chars.add(b);
        WholeLeads leads(to);
        for (uint8_t b = 0xC2; chars.ascii() && b < 0xF5; ++b)
            if (leads.arrives(d, b)) chars.add(b);
    }
    account(sizeof(known[0]) + sizeof(*known[0]));
    known.push_back(std::make_unique<std::pair<const DState *, CharSet>>(to, chars));
    return known.back()->second;
}

}  // namespace dovetail
