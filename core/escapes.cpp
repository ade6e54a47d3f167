// Other spellings than the plain ones, among listed words.
#include <algorithm>
#include <tuple>

#include "automaton.h"
#include "store.h"

namespace dovetail {

namespace {

constexpr size_t kMaxFirstBytes = 32;  // of all spellings together

/// One way to read the first byte of a spelling.
struct Beginning {
    uint8_t byte;
    DState *at;  // inside the callee
    uint32_t speller, to;
};

/// Whether the spelling is over there, and nothing else can come.
bool is_over(const DState &d) {
    return !d.has_bytes && !d.has_steps && d.extra && d.extra->exits.size() == 1 && d.extra->calls.empty() &&
           d.extra->tokens.empty() && !d.extra->behind_key;
}

/// Calls `visit(first, last, over)` for the beginnings by each byte; `over`: with it the spellings end, all of them or none.
template <class Visit> bool by_byte(const std::vector<Beginning> &all, Visit visit) {
    for (auto first = all.begin(); first != all.end();) {
        const auto last = std::find_if(first, all.end(), [&](const Beginning &b) { return b.byte != first->byte; });
        const bool over = is_over(*first->at);
        if (std::any_of(first, last, [&](const Beginning &b) { return is_over(*b.at) != over; })) return false;
        visit(first, last, over);
        first = last;
    }
    return true;
}

}  // namespace

/// Reads the first byte of the spellings in place of the calls: where that is all, as in \\n, no call is left, and walks
/// of the trie find at once that they have come to where plain characters lead. False where it cannot be done.
bool Automaton::expand_escape(DState &d) {
    std::vector<Beginning> beginnings;
    beginnings.reserve(kMaxFirstBytes);
    bool simple = true;
    nfa_.each_spelling(nfa_.places[nfa_.states[d.set[0]].a], [&](uint32_t speller, uint32_t to) {
        Automaton &callee = store_.automaton(*nfa_.spellers[speller].callee);
        DState &entry = *callee.entry();
        callee.expand(entry);
        simple = simple && entry.plain && !entry.counter_live;
        entry.each_range([&](uint8_t low, uint8_t high, DState *at) {
            // A spelling may have spellings inside, even its own: those are called.
            simple = simple && beginnings.size() + (high - low) < kMaxFirstBytes && !callee.is_escape(*at);
            for (int b = low; simple && b <= high; ++b) {
                callee.expand(*at);
                beginnings.push_back({static_cast<uint8_t>(b), at, speller, to});
            }
        });
    });
    if (!simple) return false;
    std::sort(beginnings.begin(), beginnings.end(), [](const auto &a, const auto &b) {
        return std::tie(a.byte, a.speller, a.to) < std::tie(b.byte, b.speller, b.to);
    });
    if (!by_byte(beginnings, [](auto, auto, bool) {})) return false;
    std::vector<DState::Range> &row = work_.row;
    row.clear();
    by_byte(beginnings, [&](auto first, auto last, bool over) {
        DState *to = nullptr;
        if (over) {
            work_.targets.clear();
            for (auto b = first; b != last; ++b) work_.targets.push_back(b->to);
            to = closed(work_.targets);
        } else {
            to = &add_state();
            to->counter_live = d.counter_live;
            to->expanded = true;
            extra(*to);
            make_room_for_sites(*to, static_cast<size_t>(last - first));
            for (auto b = first; b != last; ++b) {
                const CallSite::Return back{closed(b->to), 0};
                add_site(*to, nfa_.spellers[b->speller], {&back, 1}, b->at);
            }
        }
        row.push_back({first->byte, first->byte, to});
    });
    d.has_bytes = !row.empty();
    store_row(d, row);
    d.plain = d.expanded = true;
    return true;
}

}  // namespace dovetail
