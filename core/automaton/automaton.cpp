// Makes the states of an automaton when they are first entered: their bytes, calls, exits and counter steps.

#include "automaton/automaton.h"

#include <algorithm>
#include <type_traits>

#include "mask/cache.h"
#include "grammar/store.h"

namespace dovetail {

Rule::Rule() = default;
Rule::~Rule() = default;
DState::DState() = default;
DState::~DState() = default;

DState *DState::follow(std::string_view bytes) {
    DState *d = this;
    for (const char c : bytes) {
        if (d->has_steps || (d->extra && !(d->extra->calls.empty() && d->extra->exits.empty() && !d->extra->behind_key))) return nullptr;
        d = d->next(static_cast<uint8_t>(c));
        if (!d) return nullptr;
        d->owner->expand(*d);
    }
    return d;
}

Automaton::Automaton(Rule &rule, Store &store)
    : rule_(rule), store_(store), work_(store.workspace()), id_(store.next_id()), nfa_(build_nfa(rule, store.vocab())),
      heap_(work_.chunks) {
    by_target_.assign(nfa_.states.size(), kNone);
    if (rule.keeps_set) members_ = std::make_unique<MemberSets>();
    work_.visited.resize(std::max(work_.visited.size(), nfa_.states.size()));
    work_.resolved.resize(work_.visited.size());
    account(sizeof(Automaton) + nfa_.memory() + by_target_.size() * 4);
}

Automaton::~Automaton() {
    for (DState *d : states_) d->~DState();
    store_.account(-static_cast<int64_t>(bytes_));
}

void Automaton::account(size_t bytes) {
    bytes_ += bytes;
    store_.account(static_cast<int64_t>(bytes));
}

DState *Automaton::start() {
    if (!start_) {
        ++work_.closures;
        std::vector<uint32_t> set;
        close(nfa_.start, set);
        start_ = intern(set, false);
    }
    return start_;
}

DState *Automaton::entry() {
    if (!entry_) {
        ++work_.closures;
        std::vector<uint32_t> set;
        close(nfa_.start, set);
        // Where nothing could be matched anyway, callers and outputs begin in one state.
        const bool differs = set.empty() || std::any_of(set.begin(), set.end(), [&](uint32_t s) {
                                 const Nfa::Kind kind = nfa_.states[s].kind;
                                 return kind == Nfa::Accept || kind == Nfa::Enter || kind == Nfa::Tick || kind == Nfa::Leave;
                             });
        entry_ = intern(set, differs);
    }
    return entry_;
}

void Automaton::close(uint32_t state, std::vector<uint32_t> &out) {
    std::vector<uint32_t> &pending = work_.pending;
    pending.assign(1, state);
    while (!pending.empty()) {
        const uint32_t at = pending.back();
        pending.pop_back();
        if (work_.visited[at] == work_.closures) continue;
        work_.visited[at] = work_.closures;
        const Nfa::State &s = nfa_.states[at];
        if (s.kind != Nfa::Split) {
            out.push_back(at);
            continue;
        }
        for (uint32_t i = s.b; i-- > 0;) pending.push_back(nfa_.outs[s.a + i]);
    }
}

DState *Automaton::closed(uint32_t target) {
    if (by_target_[target] != kNone) return states_[by_target_[target]];
    ++work_.closures;
    work_.closure.clear();
    close(target, work_.closure);
    if (work_.closure.empty()) return nullptr;
    DState *state = intern(work_.closure, false);
    by_target_[target] = state->place;
    return state;
}

DState *Automaton::closed(const std::vector<uint32_t> &targets) {
    if (targets.size() == 1) return closed(targets[0]);
    ++work_.closures;
    work_.closure.clear();
    for (uint32_t t : targets) close(t, work_.closure);
    return work_.closure.empty() ? nullptr : intern(work_.closure, false);
}

DState &Automaton::add_state() {
    if (states_.size() >= kMaxStates) throw LimitError("a rule needs more than 262,144 deterministic states");
    DState &d = *heap_.make<DState>();
    d.place = static_cast<uint32_t>(states_.size());
    states_.push_back(&d);
    d.owner = this;
    d.counts_tokens = rule_.counts_tokens;
    d.keeps_set = rule_.keeps_set;
    account(sizeof(DState));
    return d;
}

DState *Automaton::intern(std::vector<uint32_t> &set, bool entry) {
    const bool lone = set.size() == 1 && !entry;
    uint64_t hash = entry;
    if (lone) {
        // A state that is no split closes to itself, so its place in by_target_ is that of the set.
        if (by_target_[set[0]] != kNone) return states_[by_target_[set[0]]];
    } else {
        std::sort(set.begin(), set.end());
        for (const uint32_t state : set) hash = mix(hash, state);
        const Known *known = interned_.find(hash, [&](const Known &one) {
            return one.state->entry == entry && std::equal(set.begin(), set.end(), one.state->set, one.state->set + one.state->set_size);
        });
        if (known) return known->state;
    }
    DState &d = add_state();
    d.set = heap_.copy(std::span<const uint32_t>(set)).data();
    d.set_size = static_cast<uint32_t>(set.size());
    d.entry = entry;
    account(d.set_size * 4);
    if (lone) {
        by_target_[set[0]] = d.place;
    } else {
        interned_.add({&d, hash});
        account(2 * sizeof(Known));
    }
    if (!nfa_.measures.empty()) take_measures(d);
    for (uint32_t i = 0; i < d.set_size; ++i) {
        d.counter_live = d.counter_live || nfa_.counter_live[d.set[i]];
        const Nfa::Kind kind = nfa_.states[d.set[i]].kind;
        d.has_steps = d.has_steps || is_step(kind);
    }
    return &d;
}

void Automaton::take_measures(DState &d) {
    d.fewest = kNone;
    for (uint32_t i = 0; i < d.set_size; ++i) {
        if (d.set[i] >= nfa_.measures.size()) continue;
        const Nfa::Measure &m = nfa_.measures[d.set[i]];
        if (!m.inside) continue;
        d.measured = true;
        d.between = d.between || m.between;
        d.fewest = std::min(d.fewest, m.fewest);
    }
    if (!d.measured) d.fewest = 0;
}

DState::Extra &Automaton::extra(DState &d) {
    if (!d.extra) {
        d.extra.reset(heap_.make<DState::Extra>());
        account(sizeof(DState::Extra));
    }
    return *d.extra;
}

void Automaton::expand_now(DState &d) {
    if (d.set_size == 1 && nfa_.states[d.set[0]].kind == Nfa::Range) {
        // One byte of a literal, by far the most frequent state.
        const Nfa::State &s = nfa_.states[d.set[0]];
        const DState::Range range{static_cast<uint8_t>(s.b), static_cast<uint8_t>(s.b >> 8), closed(s.a)};
        set_row(d, {&range, 1});
        d.has_bytes = d.byte_only = d.expanded = true;
        return;
    }
    if (d.has_steps) {
        extra(d);
        d.expanded = true;
        return;
    }
    std::vector<ByteEdge> &edges = work_.edges;
    edges.clear();
    work_.calls.clear();
    work_.behind_key.clear();
    for (uint32_t i = 0; i < d.set_size; ++i) {
        const Nfa::State &s = nfa_.states[d.set[i]];
        switch (s.kind) {
        case Nfa::Range: edges.push_back({static_cast<uint8_t>(s.b), static_cast<uint8_t>(s.b >> 8), s.a}); break;
        case Nfa::Bytes: edges.insert(edges.end(), nfa_.edges.begin() + s.a, nfa_.edges.begin() + s.a + s.b); break;
        case Nfa::Call: work_.calls.push_back(d.set[i]); break;
        case Nfa::Token: extra(d).tokens.push_back({&nfa_.token_sets[s.a], closed(s.b)}); break;
        case Nfa::NewKey:
            work_.behind_key.push_back(s.a);
            extra(d).key_grows = extra(d).key_grows && s.b;
            break;
        case Nfa::Accept:
            if (!d.entry) extra(d).exits.push_back(s.a);
            break;
        default: break;
        }
    }
    if (!work_.calls.empty()) {
        extra(d);
        expand_calls(d);
    }
    if (!work_.behind_key.empty()) extra(d).behind_key = closed(work_.behind_key);
    d.has_bytes = !edges.empty();
    expand_row(d, edges);
    d.byte_only = !d.extra;
    d.expanded = true;
}

/// Those in `work_.calls`; calls of the same rule go to one site.
void Automaton::expand_calls(DState &d) {
    const auto same = [&](const NfaCall &a, const NfaCall &b) {
        if (a.callee != b.callee || !(a.init == b.init) || (a.captures == kNone) != (b.captures == kNone)) return false;
        if (a.captures != kNone && nfa_.names[a.captures] != nfa_.names[b.captures]) return false;
        for (size_t i = 0; i < std::min(a.count, b.count); ++i)
            if (nfa_.arms(a)[i].trailing != nfa_.arms(b)[i].trailing) return false;
        return true;
    };
    auto &sites = work_.sites;
    auto &returns = work_.returns;
    sites.clear();
    returns.clear();
    const auto site = [&](const NfaCall &call, size_t exits) {
        auto at = std::find_if(sites.begin(), sites.end(), [&](const auto &known) { return same(*known.first, call); });
        if (at == sites.end()) at = sites.insert(at, {&call, 0});
        at->second = std::max(at->second, exits);
        return static_cast<uint32_t>(at - sites.begin());
    };
    for (uint32_t state : work_.calls) {
        const NfaCall &call = nfa_.calls[nfa_.states[state].a];
        const std::span<const NfaCall::Arm> arms = nfa_.arms(call);
        const uint32_t at = site(call, arms.size());
        for (uint32_t i = 0; i < arms.size(); ++i)
            if (arms[i].to != kNone) returns.push_back({at, i, arms[i].to});
    }
    std::sort(returns.begin(), returns.end());
    make_room_for_sites(d, sites.size());
    auto next = returns.begin();
    std::vector<CallSite::Return> &back = work_.back;
    for (uint32_t at = 0; at < sites.size(); ++at) {
        back.assign(sites[at].second, {});
        while (next != returns.end() && next->site == at) {
            const uint32_t exit = next->exit;
            work_.targets.clear();
            for (; next != returns.end() && next->site == at && next->exit == exit; ++next) work_.targets.push_back(next->to);
            back[exit].state = closed(work_.targets);
        }
        const NfaCall &call = *sites[at].first;
        for (size_t i = 0; i < std::min<size_t>(call.count, back.size()); ++i) back[i].trailing = nfa_.arms(call)[i].trailing;
        add_site(d, call, back);
    }
}

void Automaton::make_room_for_sites(DState &d, size_t count) {
    static_assert(std::is_trivially_destructible_v<CallSite>);  // nobody ends them
    d.extra->calls = {heap_.room<CallSite>(count), 0};
    account(count * sizeof(CallSite));
}

/// There must be room for it.
void Automaton::add_site(DState &d, const NfaCall &call, std::span<const CallSite::Return> returns) {
    auto &calls = d.extra->calls;
    CallSite *site = new (calls.data() + calls.size()) CallSite{};
    site->id = store_.next_id();
    site->callee = &store_.automaton(*call.callee);
    site->keeps_set = rule_.keeps_set;
    site->measured = d.measured;
    site->room = nfa_.room;
    site->init = call.init;
    if (call.captures != kNone) {
        std::vector<uint32_t> names;
        for (const std::string &name : nfa_.names[call.captures]) names.push_back(store_.name_id(name));
        site->captures = heap_.copy(std::span<const uint32_t>(names));
    }
    site->returns = heap_.copy(returns);
    const DState *back = returns.empty() ? nullptr : returns[0].state;
    site->tail = site->captures.empty() && call.callee->single_exit && back && back->set_size == 1 &&
                 nfa_.states[back->set[0]].kind == Nfa::Accept && nfa_.states[back->set[0]].a == 0;
    account(returns.size() * sizeof(CallSite::Return) + site->captures.size() * 4);
    calls = {calls.data(), calls.size() + 1};
}

}  // namespace dovetail
