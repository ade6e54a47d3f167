// How states lead back to themselves and to states whose masks are known: what lets a walk stop early.
#include <algorithm>
#include <bit>

#include "behind.h"
#include "runs.h"
#include "vocab.h"

namespace dovetail {

namespace {

constexpr int kManyBytes = 10;  // that loop; what goes round on fewer is walked quickly

/// Adds the bytes by which all characters that they begin arrive, or all but a few.
template <class Arrives> void find_leads(const DState &d, const Arrives &arrives, size_t few, HoledSet &out) {
    Behind behind(arrives, few);
    for (uint32_t b = 0xC2; b < 0xF5; ++b) {
        if (!d.next(static_cast<uint8_t>(b)) || !behind.look(d, static_cast<uint8_t>(b))) continue;
        (behind.missing().empty() ? out.leads : out.holed) |= uint64_t{1} << (b - 0xC0);
        out.holes.insert(out.holes.end(), behind.missing().begin(), behind.missing().end());
    }
}

}  // namespace

bool Automaton::arrives(DState *to, const DState &home, const Loops &loops) {
    if (!to || !loops.ticks) return to == &home;
    expand(*to);
    if (!to->has_steps) return false;
    const auto comes_back = [&](const Resolved &r) {
        return r.state == &home && (r.how == Resolved::Tick || r.how == Resolved::TickLeft);
    };
    // With a lower bound still open the state is another one than without, so both are tried.
    for (const Counter c : {Counter{kUnbounded, 0}, Counter{kUnbounded, 2}}) {
        const std::vector<Resolved> &r = resolve(*to, c);
        if (!loops.alone) return std::any_of(r.begin(), r.end(), comes_back);
        if (r.size() == 1 && comes_back(r[0])) return true;
    }
    return false;
}

const Loops &Automaton::loops(DState &d) {
    if (d.extra && d.extra->loops) return *d.extra->loops;
    static const Loops kNoLoops;
    bool to_itself = d.counter_live && !d.keeps_set;  // or counts, and so comes back another way
    d.each_target([&](const DState *to) { to_itself = to_itself || to == &d; });
    if (!to_itself) return kNoLoops;
    extra(d);
    Loops result;
    // A text with a token budget is entered byte by byte, never by subtrees: its counter is not a plain tick.
    if (d.extra->calls.empty() && d.extra->tokens.empty() && !d.extra->behind_key && !d.has_steps && !rule_.counts_tokens) {
        auto look = [&](bool ticks, bool alone) {
            Loops found;
            found.ticks = ticks;
            found.alone = alone;
            const auto arrives = [&](DState *to) { return this->arrives(to, d, found); };
            for (uint8_t b = 0; b < 128; ++b)
                if (arrives(d.next(b))) found.add(b);
            if (found.ascii()) find_leads(d, arrives, !ticks && found.ascii() >= kManyChars ? kFewMissing : 0, found);
            if (alone || found.ascii() > result.ascii()) result = std::move(found);
        };
        look(false, true);  // inside of what is repeated nothing is counted
        const bool counts = d.counter_live && !d.keeps_set;
        if (counts && !result.ascii()) look(true, true);
        if (result.ticks && result.ascii() < kManyBytes) look(true, false);
    }
    account(sizeof(Loops) + result.holes.size() * sizeof(result.holes[0]));
    d.extra->loops = std::make_unique<Loops>(std::move(result));
    look_beyond_lower_bound(d, *d.extra->loops);
    return *d.extra->loops;
}

void Automaton::look_beyond_lower_bound(DState &d, Loops &loops) {
    if (!loops.ticks || !loops.ascii()) return;
    if (!loops.alone) {
        loops.met = loops.crosses = true;
        return;
    }
    const int byte = loops.low ? std::countr_zero(loops.low) : 64 + std::countr_zero(loops.high);
    DState *to = d.next(static_cast<uint8_t>(byte));
    // A repetition is counted when it begins, so nothing more is needed before the loop can first be left.
    const std::vector<Resolved> &r = resolve(*to, Counter{kUnbounded, 0});
    if (r.size() != 1) return;
    expand(*r[0].state);
    loops.met = loops.crosses = r[0].state == &d;
    if (loops.met) return;
    const Loops &met = this->loops(*r[0].state);
    loops.crosses = met.ticks && met.alone && loops.within(met);
}

const CharSet &Automaton::wide_loops(DState &d) {
    if (d.extra && d.extra->wide) return *d.extra->wide;
    CharSet set;
    std::vector<DState *> round{&d};
    if (!spread_wide(d, set, round)) {
        set = {};
        // From the first of many states the same many are reached, so nothing is found there either.
        round.resize((round.size() + 1) / 2);
    }
    for (DState *r : round) {
        if (extra(*r).wide) continue;
        r->extra->wide = std::make_unique<CharSet>(set);
        account(sizeof(CharSet));
    }
    return *d.extra->wide;
}

/// Grows the states of the round and shrinks the set until each of the states leads by all of it to another of them.
bool Automaton::spread_wide(DState &d, CharSet &set, std::vector<DState *> &round) {
    constexpr int kMostBytes = 32;
    constexpr size_t kMaxRound = 24;
    set = d.ascii();
    for (size_t i = 0; i < round.size(); ++i) {
        const DState *last = nullptr;  // most characters lead where the one before them leads
        for (int b = 0; b < 128; ++b) {
            const auto byte = static_cast<uint8_t>(b);
            if (!set.has(byte)) continue;
            DState *to = round[i]->next(byte);
            if (to == last || std::find(round.begin(), round.end(), to) != round.end()) {
                last = to;
                continue;
            }
            expand(*to);
            const CharSet there = to->ascii();
            const CharSet common{set.low & there.low, set.high & there.high, 0};
            // Leaving out a byte costs less than what a state that takes little would leave of the others.
            if (to->has_steps || to->counter_live || common.ascii() * 2 < set.ascii()) {
                (byte < 64 ? set.low : set.high) &= ~(uint64_t{1} << (byte & 63));
            } else {
                set = common;
                round.push_back(to);
            }
            if (round.size() > kMaxRound || set.ascii() < kMostBytes) return false;
        }
    }
    const auto arrives = [&](const DState *to) { return std::find(round.begin(), round.end(), to) != round.end(); };
    set.leads = ~uint64_t{0};
    for (const DState *r : round) {
        HoledSet found;
        if (set.leads) find_leads(*r, arrives, 0, found);
        set.leads &= found.leads;
    }
    return true;
}

void Automaton::offer_home(DState &d) {
    if (home_ && home_->plain_mask) return;
    const Loops &loops = this->loops(d);
    if (!loops.ticks && loops.ascii() >= kManyBytes) home_ = &d;
}

const CallSite *Automaton::lone_call(DState &d) {
    expand(d);
    if (d.has_bytes || d.has_steps || !d.extra || d.extra->calls.size() != 1) return nullptr;
    return d.extra->exits.empty() && d.extra->tokens.empty() && !d.extra->behind_key ? &d.extra->calls[0] : nullptr;
}

const Lift &Automaton::lift(DState &d, std::string_view bytes) {
    if (!extra(d).lift) {
        d.extra->lift = std::make_unique<Lift>();
        account(sizeof(Lift));
    }
    Lift &lift = *d.extra->lift;
    if (!lift.may_try()) return lift;
    ++lift.tries;
    constexpr int kDepth = 4;  // the bytes of a character
    DState *at = &d;
    for (int i = 0; i < kDepth && at; ++i) {
        std::vector<const CallSite *> sites;
        DState *entered = at;
        for (const CallSite *site = lone_call(*at); site && sites.size() < kDepth; site = entered->owner->lone_call(*entered)) {
            sites.push_back(site);
            entered = site->entry();
        }
        if (!sites.empty()) {
            DState *home = entered->owner->home(), *same = home ? home->follow(bytes) : nullptr;
            if (same && takes_the_same(d, *same, *sites[0], *entered, kDepth)) lift = {same, std::move(sites), 0};
            break;
        }
        DState *next = nullptr;
        if (at->plain) at->each_range([&](uint8_t, uint8_t, DState *to) { next = next ? next : to; });
        at = next;
    }
    return lift;
}

/// Whether `d` leads to the call at `site`, which comes to `entered`, as `other` leads there itself.
bool Automaton::takes_the_same(DState &d, DState &other, const CallSite &site, DState &entered, int depth) {
    if (lone_call(d) == &site) return &entered == &other && !other.has_steps && !other.keeps_counter();
    other.owner->expand(other);
    if (depth == 0 || !d.plain || !other.plain || d.counter_live || other.counter_live) return false;
    const auto same = [&](const DState::Range &a, const DState::Range &b) {
        return a.low == b.low && a.high == b.high && takes_the_same(*a.to, *b.to, site, entered, depth - 1);
    };
    if (!d.dense && !other.dense && std::equal(d.row, d.row + d.ranges, other.row, other.row + other.ranges, same)) return true;
    DState *last = nullptr, *last_other = nullptr;
    for (int b = 0; b < 256; ++b) {
        DState *to = d.next(static_cast<uint8_t>(b)), *there = other.next(static_cast<uint8_t>(b));
        if ((!to && !there) || (to == last && there == last_other)) continue;
        if (!to || !there || !takes_the_same(*to, *there, site, entered, depth - 1)) return false;
        last = to;
        last_other = there;
    }
    return true;
}

}  // namespace dovetail
