#include "automaton.h"

#include <algorithm>

#include "mask.h"
#include "store.h"

namespace dovetail {

namespace {

constexpr uint16_t kSparseRanges = 6;

uint32_t counter_class(uint32_t v) { return v < 2 ? v : 2; }

}  // namespace

Rule::Rule() = default;
Rule::~Rule() = default;
DState::DState() = default;
DState::~DState() {
    if (set != &lone) delete[] set;
    if (row != &lone_range) delete[] row;
}

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

bool Automaton::SetKey::operator==(const SetKey &other) const {
    return size == other.size && entry == other.entry && std::equal(data, data + size, other.data);
}

size_t Automaton::SetHash::operator()(const SetKey &k) const {
    uint64_t h = k.entry;
    for (uint32_t i = 0; i < k.size; ++i) h = mix(h, k.data[i]);
    return h;
}

Automaton::Automaton(Rule &rule, Store &store)
    : rule_(rule), store_(store), work_(store.workspace()), id_(store.next_id()), nfa_(build_nfa(rule, store.vocab())) {
    by_target_.assign(nfa_.states.size(), kNone);
    if (rule.keeps_set) members_ = std::make_unique<MemberSets>();
    work_.visited.resize(std::max(work_.visited.size(), nfa_.states.size()));
    work_.resolved.resize(work_.visited.size());
    account(sizeof(Automaton) + nfa_.memory() + by_target_.size() * 4);
}

Automaton::~Automaton() { store_.account(-static_cast<int64_t>(bytes_)); }

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
    if (by_target_[target] != kNone) return &state(by_target_[target]);
    ++work_.closures;
    work_.closure.clear();
    close(target, work_.closure);
    if (work_.closure.empty()) return nullptr;
    DState *found = intern(work_.closure, false);
    by_target_[target] = found->place;
    return found;
}

DState *Automaton::closed(const std::vector<uint32_t> &targets) {
    if (targets.size() == 1) return closed(targets[0]);
    ++work_.closures;
    work_.closure.clear();
    for (uint32_t t : targets) close(t, work_.closure);
    return work_.closure.empty() ? nullptr : intern(work_.closure, false);
}

DState &Automaton::add_state() {
    if (state_count_ >= kMaxStates) throw LimitError("a rule needs more than 262,144 deterministic states");
    if (state_count_ % kBlock == 0) states_.push_back(std::make_unique<DState[]>(kBlock));
    DState &d = state(state_count_);
    d.place = state_count_++;
    d.owner = this;
    d.counts_tokens = rule_.counts_tokens;
    d.keeps_set = rule_.keeps_set;
    account(sizeof(DState));
    return d;
}

DState *Automaton::intern(std::vector<uint32_t> &set, bool entry) {
    const bool lone = set.size() == 1 && !entry;
    if (lone) {
        // A state that is no split closes to itself, so its place in by_target_ is that of the set.
        if (by_target_[set[0]] != kNone) return &state(by_target_[set[0]]);
    } else {
        std::sort(set.begin(), set.end());
        const auto it = interned_.find(SetKey{set.data(), static_cast<uint32_t>(set.size()), entry});
        if (it != interned_.end()) return it->second;
    }
    DState &d = add_state();
    d.set_size = static_cast<uint32_t>(set.size());
    d.entry = entry;
    if (lone) {
        d.lone = set[0];
        d.set = &d.lone;
        by_target_[set[0]] = d.place;
    } else {
        auto own = std::make_unique<uint32_t[]>(set.size());
        std::copy(set.begin(), set.end(), own.get());
        d.set = own.release();
        interned_.emplace(SetKey{d.set, d.set_size, entry}, &d);
        account(d.set_size * 4 + 64);
    }
    d.respelled = true;
    if (!nfa_.measures.empty()) take_measures(d);
    for (uint32_t i = 0; i < d.set_size; ++i) {
        d.counter_live = d.counter_live || nfa_.counter_live[d.set[i]];
        const Nfa::Kind kind = nfa_.states[d.set[i]].kind;
        d.respelled = d.respelled && kind == Nfa::Spell;
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
        d.extra = std::make_unique<DState::Extra>();
        account(sizeof(DState::Extra));
    }
    return *d.extra;
}

void Automaton::expand_now(DState &d) {
    if (d.set_size == 1 && nfa_.states[d.set[0]].kind == Nfa::Range) {
        // One byte of a literal, by far the most frequent state.
        const Nfa::State &s = nfa_.states[d.set[0]];
        d.lone_range = {static_cast<uint8_t>(s.b), static_cast<uint8_t>(s.b >> 8), closed(s.a)};
        d.row = &d.lone_range;
        d.ranges = 1;
        d.has_bytes = d.plain = d.expanded = true;
        return;
    }
    if (d.has_steps) {
        extra(d);
        d.expanded = true;
        return;
    }
    if (is_escape(d) && expand_escape(d)) return;
    if (expand_place(d)) return;
    std::vector<ByteEdge> &edges = work_.edges;  // what came before may have expanded others
    edges.clear();
    work_.calls.clear();
    work_.behind_key.clear();
    for (uint32_t i = 0; i < d.set_size; ++i) {
        const Nfa::State &s = nfa_.states[d.set[i]];
        switch (s.kind) {
        case Nfa::Range: edges.push_back({static_cast<uint8_t>(s.b), static_cast<uint8_t>(s.b >> 8), s.a}); break;
        case Nfa::Bytes: edges.insert(edges.end(), nfa_.edges.begin() + s.a, nfa_.edges.begin() + s.a + s.b); break;
        case Nfa::Place: nfa_.each_plain(nfa_.places[s.a], [&](const ByteEdge &e) { edges.push_back(e); }); break;
        case Nfa::Call:
        case Nfa::Escape:
        case Nfa::Spell: work_.calls.push_back(d.set[i]); break;
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
        expand_calls(d, work_.calls);
    }
    if (!work_.behind_key.empty()) extra(d).behind_key = closed(work_.behind_key);
    d.has_bytes = !edges.empty();
    expand_row(d, edges);
    d.plain = !d.extra;
    d.expanded = true;
}

void DState::Dense::put(uint8_t low, uint8_t high, DState *state) {
    auto at = std::find(to.begin(), to.end(), state);
    if (at == to.end()) at = to.insert(at, state);
    std::fill(index + low, index + high + 1, static_cast<uint8_t>(at - to.begin()));
}

/// A place among words, perhaps with what may end them there: most of its row is the same at all places. False where it
/// is another state, or where a byte leads to several states.
bool Automaton::expand_place(DState &d) {
    const NfaPlace *place = nullptr;
    std::vector<DState::Range> &row = work_.row;
    row.clear();
    for (uint32_t i = 0; i < d.set_size; ++i) {
        const Nfa::State &s = nfa_.states[d.set[i]];
        if (s.kind == Nfa::Place && !place) place = &nfa_.places[s.a];
        else if (s.kind == Nfa::Range) row.push_back({static_cast<uint8_t>(s.b), static_cast<uint8_t>(s.b >> 8), closed(s.a)});
        else return false;
    }
    if (!place) return false;
    const uint8_t lead = nfa_.tries[place->trie].lead;
    if (place->escape != kNone) row.push_back({lead, lead, closed(place->escape)});
    const DState::Dense &common = place_row(place->trie);
    for (const DState::Range &r : row)
        if (std::any_of(common.index + r.low, common.index + r.high + 1, [](uint8_t known) { return known != 0; })) return false;
    for (uint32_t i = place->first; i < place->first + place->count; ++i) {
        const NfaFork &fork = nfa_.forks[i];
        if (fork.raw) row.push_back({fork.raw, fork.raw, fork.to == kNone ? nullptr : closed(fork.to)});
    }
    std::sort(row.begin(), row.end(), [](const auto &a, const auto &b) { return a.low < b.low; });
    const auto overlap = [](const auto &a, const auto &b) { return b.low <= a.high; };
    if (std::adjacent_find(row.begin(), row.end(), overlap) != row.end()) return false;
    d.dense = &common;
    if (row.size() <= kSparseRanges) {
        set_row(d, row);
    } else {
        auto dense = std::make_unique<DState::Dense>(common);
        for (const DState::Range &r : row) dense->put(r.low, r.high, r.to);
        own_row(d, std::move(dense));
    }
    d.has_bytes = d.plain = d.expanded = true;
    return true;
}

/// Where the characters lead that leave the words of a trie.
const DState::Dense &Automaton::place_row(uint32_t trie) {
    if (rows_.size() < nfa_.tries.size()) rows_.resize(nfa_.tries.size());
    if (!rows_[trie]) {
        rows_[trie] = std::make_unique<DState::Dense>();
        DState::Dense &row = *rows_[trie];
        row.to.push_back(nullptr);
        if (nfa_.tries[trie].tail != kNone)
            for (const ByteEdge &e : nfa_.tries[trie].plain) row.put(e.low, e.high, closed(e.to));
        account(sizeof(DState::Dense) + row.to.size() * sizeof(DState *));
    }
    return *rows_[trie];
}

void Automaton::expand_row(DState &d, std::vector<ByteEdge> &edges) {
    std::vector<DState::Range> &ranges = work_.row;
    ranges.clear();
    auto push = [&](uint8_t low, uint8_t high, DState *to) {
        if (!to) return;
        if (!ranges.empty() && ranges.back().to == to && ranges.back().high + 1 == low) ranges.back().high = high;
        else ranges.push_back({low, high, to});
    };
    std::sort(edges.begin(), edges.end(), [](const ByteEdge &a, const ByteEdge &b) { return a.low < b.low; });
    const auto overlap = [](const ByteEdge &a, const ByteEdge &b) { return b.low <= a.high; };
    if (std::adjacent_find(edges.begin(), edges.end(), overlap) == edges.end()) {
        for (const ByteEdge &e : edges) push(e.low, e.high, closed(e.to));
        return store_row(d, ranges);
    }
    // Cut at every border, then gather the targets of each piece.
    std::vector<uint16_t> &cuts = work_.cuts;
    cuts.clear();
    for (const ByteEdge &e : edges) {
        cuts.push_back(e.low);
        cuts.push_back(static_cast<uint16_t>(e.high + 1));
    }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    std::vector<ByteEdge> &active = work_.active;
    active.clear();
    size_t next = 0;
    std::vector<uint32_t> &targets = work_.targets, &last_targets = work_.last_targets;
    DState *last = nullptr;
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
        std::erase_if(active, [&](const ByteEdge &e) { return e.high < cuts[i]; });
        while (next < edges.size() && edges[next].low == cuts[i]) active.push_back(edges[next++]);
        if (active.empty()) continue;
        targets.clear();
        for (const ByteEdge &e : active) targets.push_back(e.to);
        std::sort(targets.begin(), targets.end());
        targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
        if (!last || targets != last_targets) last = closed(targets);
        last_targets = targets;
        push(static_cast<uint8_t>(cuts[i]), static_cast<uint8_t>(cuts[i + 1] - 1), last);
    }
    store_row(d, ranges);
}

void Automaton::store_row(DState &d, const std::vector<DState::Range> &ranges) {
    if (ranges.size() > kSparseRanges) {
        auto dense = std::make_unique<DState::Dense>();
        dense->to.push_back(nullptr);
        bool fits = true;
        for (const DState::Range &r : ranges) {
            dense->put(r.low, r.high, r.to);
            fits = fits && dense->to.size() <= 256;
        }
        if (fits) return own_row(d, std::move(dense));
    }
    set_row(d, ranges);
}

void Automaton::own_row(DState &d, std::unique_ptr<DState::Dense> row) {
    account(sizeof(DState::Dense) + row->to.size() * sizeof(DState *));
    if (rows_.size() < nfa_.tries.size()) rows_.resize(nfa_.tries.size());
    d.dense = row.get();
    rows_.push_back(std::move(row));
}

void Automaton::set_row(DState &d, std::span<const DState::Range> row) {
    d.ranges = static_cast<uint16_t>(row.size());
    if (row.size() == 1) {
        d.lone_range = row[0];
        d.row = &d.lone_range;
    } else if (!row.empty()) {
        auto own = std::make_unique<DState::Range[]>(row.size());
        std::copy(row.begin(), row.end(), own.get());
        d.row = own.release();
        account(row.size() * sizeof(DState::Range));
    }
}

/// Calls of the same rule go to one site.
void Automaton::expand_calls(DState &d, const std::vector<uint32_t> &calls) {
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
    const auto spell = [&](uint32_t speller, uint32_t to) { returns.push_back({site(nfa_.spellers[speller], 1), 0, to}); };
    for (uint32_t state : calls) {
        const Nfa::State &s = nfa_.states[state];
        if (s.kind == Nfa::Spell) {
            spell(s.a, s.b);
        } else if (s.kind == Nfa::Escape) {
            nfa_.each_spelling(nfa_.places[s.a], spell);
        } else {
            const NfaCall &call = nfa_.calls[s.a];
            const std::span<const NfaCall::Arm> arms = nfa_.arms(call);
            const uint32_t at = site(call, arms.size());
            for (uint32_t i = 0; i < arms.size(); ++i)
                if (arms[i].to != kNone) returns.push_back({at, i, arms[i].to});
        }
    }
    std::sort(returns.begin(), returns.end());
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

void Automaton::add_site(DState &d, const NfaCall &call, std::span<const CallSite::Return> returns, DState *from) {
    auto site = std::make_unique<CallSite>();
    site->id = store_.next_id();
    site->callee = &store_.automaton(*call.callee);
    site->from = from;
    site->keeps_set = rule_.keeps_set;
    site->measured = d.measured;
    site->room = nfa_.room;
    site->init = call.init;
    if (call.captures != kNone) {
        site->captures = std::make_unique<std::vector<uint32_t>>();
        for (const std::string &name : nfa_.names[call.captures]) site->captures->push_back(store_.name_id(name));
    }
    site->set_returns(returns);
    const DState *back = returns.empty() ? nullptr : returns[0].state;
    site->tail = !site->captures && call.callee->single_exit && back && back->set_size == 1 &&
                 nfa_.states[back->set[0]].kind == Nfa::Accept && nfa_.states[back->set[0]].a == 0;
    account(sizeof(CallSite) + (returns.size() > 1 ? returns.size() * sizeof(CallSite::Return) : 0));
    d.extra->calls.push_back(std::move(site));
}

const std::vector<Resolved> &Automaton::resolve(DState &d, Counter c) {
    if (rule_.keeps_set) {
        auto &by_set = d.extra->by_set;
        if (!by_set) by_set = std::make_unique<std::unordered_map<uint32_t, std::vector<Resolved>>>();
        const auto known = by_set->find(c.left);
        if (known != by_set->end()) return known->second;
        std::vector<Resolved> found = resolve_now(d, c);
        account(64 + found.size() * sizeof(Resolved));
        return by_set->emplace(c.left, std::move(found)).first->second;
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

std::vector<Resolved> Automaton::resolve_now(DState &d, Counter c) {
    std::vector<Workspace::Thread> &pending = work_.threads, &seen = work_.seen;
    pending.clear();
    seen.clear();
    const uint64_t round = ++work_.rounds;
    std::vector<std::pair<Resolved, std::vector<uint32_t>>> groups;
    std::vector<uint32_t> &indifferent = work_.indifferent;
    indifferent.clear();
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
            indifferent.push_back(t.state);
        } else {
            auto at = std::find_if(groups.begin(), groups.end(), [&](const auto &g) {
                return g.first.how == t.way.how && g.first.value == t.way.value;
            });
            if (at == groups.end()) at = groups.insert(groups.end(), {t.way, {}});
            at->second.push_back(t.state);
        }
    }
    if (groups.empty() && indifferent.empty()) return {};
    if (groups.empty()) groups.push_back({{nullptr, Resolved::Zero, {}}, {}});
    // States that do not look at the counter go with another group, so that one automaton state serves both; with the
    // one that goes round, so that it comes back to the same state each time.
    const auto ticks = [](const auto &g) { return g.first.how == Resolved::Tick || g.first.how == Resolved::TickLeft; };
    auto host = std::find_if(groups.begin(), groups.end(), ticks);
    if (host == groups.end()) host = groups.begin();
    host->second.insert(host->second.end(), indifferent.begin(), indifferent.end());
    std::vector<Resolved> result;
    for (auto &[way, set] : groups) {
        std::sort(set.begin(), set.end());
        set.erase(std::unique(set.begin(), set.end()), set.end());
        way.state = intern(set, d.entry);
        result.push_back(way);
    }
    return result;
}

}  // namespace dovetail
