// What counter steps come to.
#include <algorithm>

#include "automaton/automaton.h"

namespace dovetail {

namespace {

uint32_t counter_class(uint32_t v) { return v < 2 ? v : 2; }

}  // namespace

Counter Resolved::apply(Counter c) const {
    switch (how) {
    case Zero: return {};
    case Keep: return c;
    case Set: return value;
    case Tick:
        if (c.need > 0) --c.need;
        [[fallthrough]];
    case TickLeft:
        if (c.left != kUnbounded) --c.left;
        return c;
    }
    return c;
}

const std::vector<Resolved> &Automaton::resolve(DState &d, Counter c) {
    if (rule_.keeps_set) {
        auto &by_set = d.extra->by_set;
        if (!by_set) by_set = std::make_unique<std::unordered_map<uint32_t, std::vector<Resolved>>>();
        const auto known = by_set->find(c.left);
        if (known != by_set->end()) return known->second;
        std::vector<Resolved> resolved = resolve_now(d, c);
        account(64 + resolved.size() * sizeof(Resolved));
        return by_set->emplace(c.left, std::move(resolved)).first->second;
    }
    if (!d.extra->resolved) {
        d.extra->resolved = std::make_unique<DState::Extra::ByCounterClass>();
        account(sizeof(DState::Extra::ByCounterClass));
    }
    auto &slot = (*d.extra->resolved)[counter_class(c.left) * 3 + counter_class(c.need)];
    if (!slot) {
        slot = std::make_unique<std::vector<Resolved>>(resolve_now(d, c));
        account(sizeof(*slot) + slot->size() * sizeof(Resolved));
    }
    return *slot;
}

uint32_t Automaton::with_member(uint32_t set, uint32_t member) {
    std::vector<bool> larger = members_->sets[set];
    if (larger.size() <= member) larger.resize(member + 1);
    larger[member] = true;
    const auto [it, fresh] = members_->numbers.try_emplace(std::move(larger), static_cast<uint32_t>(members_->sets.size()));
    if (fresh) {
        if (members_->sets.size() >= kMaxStates) throw LimitError("members came in more than 262,144 orders");
        members_->sets.push_back(it->first);
        account(2 * (sizeof(std::vector<bool>) + it->first.size() / 8) + 64);
    }
    return it->second;
}

/// Follows the counter steps from a state: `work_.grouped` gets the states that they come to with the way there, kNone
/// for those that do not look at the counter.
void Automaton::follow_steps(const DState &d, Counter c, std::vector<Resolved> &ways) {
    std::vector<Workspace::Thread> &pending = work_.threads, &seen = work_.seen;
    pending.clear();
    seen.clear();
    const uint64_t round = ++work_.rounds;
    work_.grouped.clear();
    auto spread = [&](uint32_t to, const Resolved &way, bool ticked) {
        if (nfa_.states[to].kind != Nfa::Split) {
            pending.push_back({to, way, ticked});
            return;
        }
        ++work_.closures;
        work_.closure.clear();
        close(to, work_.closure);
        for (size_t i = work_.closure.size(); i-- > 0;) pending.push_back({work_.closure[i], way, ticked});
    };
    for (uint32_t i = d.set_size; i-- > 0;) pending.push_back({d.set[i], {nullptr, Resolved::Keep, {}}, false});
    while (!pending.empty()) {
        Workspace::Thread t = pending.back();
        pending.pop_back();
        const auto known = [&](const Workspace::Thread &s) {
            return s.state == t.state && s.way.how == t.way.how && s.way.value == t.way.value && s.ticked == t.ticked;
        };
        // Nearly all states come once; only then they need no look at the others.
        if (work_.resolved[t.state] == round && std::any_of(seen.begin(), seen.end(), known)) continue;
        work_.resolved[t.state] = round;
        seen.push_back(t);
        const Nfa::State &s = nfa_.states[t.state];
        const Counter now = t.way.apply(c);
        if (s.kind == Nfa::Enter) {
            spread(s.a, {nullptr, Resolved::Set, nfa_.bounds[s.b]}, false);
        } else if (s.kind == Nfa::Tick) {
            // A second tick before the next byte would be a repetition of nothing.
            if (now.left == 0 || t.ticked) continue;
            const Resolved::How how = s.b ? Resolved::TickLeft : Resolved::Tick;
            Resolved way{nullptr, how, {}};
            if (t.way.how == Resolved::Set) way = {nullptr, Resolved::Set, Resolved{nullptr, how, {}}.apply(now)};
            spread(s.a, way, true);
        } else if (s.kind == Nfa::Leave) {
            if (now.need == 0 || s.b) spread(s.a, t.way, t.ticked);
        } else if (s.kind == Nfa::Short) {
            if (now.need > 0) spread(s.a, t.way, t.ticked);
        } else if (s.kind == Nfa::Full) {
            if (now.left == 0) spread(s.a, t.way, t.ticked);
        } else if (s.kind == Nfa::Fresh) {
            const std::vector<bool> &there = members_->sets[now.left];
            if (s.b >= there.size() || !there[s.b]) spread(s.a, t.way, t.ticked);
        } else if (s.kind == Nfa::Mark) {
            spread(s.a, {nullptr, Resolved::Set, {with_member(now.left, s.b), 0}}, t.ticked);
        } else if (s.kind == Nfa::All || s.kind == Nfa::Room) {
            const std::vector<bool> &there = members_->sets[now.left], &wanted = nfa_.sets[s.b];
            bool all = true;
            for (size_t i = 0; i < wanted.size(); ++i) all = all && (!wanted[i] || (i < there.size() && there[i]));
            if (all == (s.kind == Nfa::All)) spread(s.a, t.way, t.ticked);
        } else if (!nfa_.counter_live[t.state]) {
            work_.grouped.emplace_back(kNone, t.state);
        } else {
            const auto same = [&](const Resolved &way) { return way.how == t.way.how && way.value == t.way.value; };
            auto at = std::find_if(ways.begin(), ways.end(), same);
            if (at == ways.end()) at = ways.insert(at, t.way);
            work_.grouped.emplace_back(static_cast<uint32_t>(at - ways.begin()), t.state);
        }
    }
}

std::vector<Resolved> Automaton::resolve_now(DState &d, Counter c) {
    std::vector<Resolved> ways;
    follow_steps(d, c, ways);
    auto &grouped = work_.grouped;
    if (grouped.empty()) return {};
    if (ways.empty()) ways.push_back({nullptr, Resolved::Zero, {}});
    // States that do not look at the counter go with another group, so that one automaton state serves both; with the
    // one that goes round, so that it comes back to the same state each time.
    const auto ticks = [](const Resolved &way) { return way.how == Resolved::Tick || way.how == Resolved::TickLeft; };
    auto host = std::find_if(ways.begin(), ways.end(), ticks);
    if (host == ways.end()) host = ways.begin();
    for (auto &[group, state] : grouped)
        if (group == kNone) group = static_cast<uint32_t>(host - ways.begin());
    std::sort(grouped.begin(), grouped.end());
    grouped.erase(std::unique(grouped.begin(), grouped.end()), grouped.end());
    auto next = grouped.begin();
    for (uint32_t group = 0; group < ways.size(); ++group) {
        work_.closure.clear();
        for (; next != grouped.end() && next->first == group; ++next) work_.closure.push_back(next->second);
        ways[group].state = intern(work_.closure, d.entry);
    }
    return ways;
}

}  // namespace dovetail
