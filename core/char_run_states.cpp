// Where the characters of a run lead from one state: known for all that one byte begins at once.
#include <algorithm>

#include "char_run.h"
#include "byte_only.h"

namespace dovetail {

namespace {

constexpr size_t kFewMissing = 64;  // of the characters that one byte begins

/// Looks whether characters come from a state to where `arrives(state)` holds; null says that they come nowhere.
template <class Arrives> class Behind {
  public:
    Behind(const Arrives &arrives, size_t most) : arrives_(arrives), most_(most) {}

    /// Of those that a byte begins, whether at most so many do not; these are in `missing` then.
    bool look(const DState &from, uint8_t lead) {
        missing_.clear();
        count_ = 0;
        const uint8_t utf8 = utf8_next(0, lead);
        return utf8 != kUtf8Bad && go_on(from.next(lead), utf8, lead & (0x7Fu >> char_size(lead)));
    }
    /// Ranges of codes, sorted.
    const std::vector<std::pair<uint32_t, uint32_t>> &missing() const { return missing_; }

  private:
    using Place = std::pair<const DState *, uint8_t>;

    /// Inside a character: `code` is what its bytes so far are worth.
    bool go_on(DState *at, uint8_t utf8, uint32_t code) {
        if (!at) return arrives_(at);
        if (std::find(whole_.begin(), whole_.end(), Place{at, utf8}) != whole_.end()) return true;
        at->owner->expand(*at);
        // Nothing else may come here: subtrees and profiles rely on it.
        if (!only_takes_bytes(*at) || !goes_on_inside(*at)) return false;
        const size_t before = count_;
        Place last{at, kUtf8Bad};  // most bytes lead where the one before them leads
        for (uint32_t b = 0x80; b < 0xC0; ++b) {
            const uint8_t next = utf8_next(utf8, static_cast<uint8_t>(b));
            DState *to = at->next(static_cast<uint8_t>(b));
            if (count_ == before && Place{to, next} == last) continue;
            last = {to, next};
            const uint32_t here = code << 6 | (b & 0x3F);
            const bool good = next == kUtf8Bad ? !to : next == 0 ? arrives_(to) || miss(here) : go_on(to, next, here);
            if (!good) return false;
        }
        if (count_ == before) whole_.emplace_back(at, utf8);
        return true;
    }

    bool miss(uint32_t code) {
        if (!missing_.empty() && missing_.back().second + 1 == code) missing_.back().second = code;
        else missing_.emplace_back(code, code);
        return ++count_ <= most_;
    }

    const Arrives &arrives_;
    size_t most_, count_ = 0;
    std::vector<std::pair<uint32_t, uint32_t>> missing_;
    std::vector<Place> whole_;  // from where all characters arrive
};

/// Adds the bytes by which all characters that they begin arrive, or all but a few.
template <class Arrives> void find_leads(const DState &d, const Arrives &arrives, size_t few, HoledSet &out) {
    Behind behind(arrives, few);
    for (uint32_t b = 0xC2; b < 0xF5; ++b) {
        if (!behind.look(d, static_cast<uint8_t>(b))) continue;
        (behind.missing().empty() ? out.leads : out.holed) |= uint64_t{1} << (b - 0xC0);
        out.holes.insert(out.holes.end(), behind.missing().begin(), behind.missing().end());
    }
}

}  // namespace

const HoledSet &Automaton::chars_to(DState &d, const DState *to) {
    auto &known = extra(d).chars_to;
    const auto same = [&](const auto &one) { return one->first == to; };
    if (const auto at = std::find_if(known.begin(), known.end(), same); at != known.end()) return (*at)->second;
    HoledSet chars;
    // A text with a token budget is entered byte by byte, never by subtrees.
    if (!d.counts_tokens) {
        for (uint8_t b = 0; b < 128; ++b)
            if (d.next(b) == to) chars.add(b);
        const auto arrives = [&](const DState *at) { return at == to; };
        if (chars.ascii()) find_leads(d, arrives, chars.ascii() >= kManyChars ? kFewMissing : 0, chars);
    }
    account(sizeof(chars) + 16 + chars.holes.size() * sizeof(chars.holes[0]));
    known.push_back(std::make_unique<std::pair<const DState *, HoledSet>>(to, std::move(chars)));
    return known.back()->second;
}

}  // namespace dovetail
