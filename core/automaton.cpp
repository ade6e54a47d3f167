#include "automaton.h"

#include <algorithm>

#include "mask.h"
#include "store.h"

namespace dovetail {

namespace {

constexpr size_t kMaxStates = 1u << 18;    // deterministic states of one rule
constexpr uint16_t kSparseRanges = 6;

uint32_t counter_class(uint32_t v) { return v < 2 ? v : 2; }

}  // namespace

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

Automaton::Automaton(Rule &rule, Store &store) : rule_(rule), store_(store), nfa_(build_nfa(rule, store.vocab())) {
    mark_.assign(nfa_.states.size(), 0);
    by_target_.assign(nfa_.states.size(), kNone);
    account(sizeof(Automaton) + nfa_.memory() + mark_.size() * 8);
}

Automaton::~Automaton() { store_.account(-static_cast<int64_t>(bytes_)); }

void Automaton::account(size_t bytes) {
    bytes_ += bytes;
    store_.account(static_cast<int64_t>(bytes));
}

DState *Automaton::start() {
    if (!start_) {
        ++epoch_;
        std::vector<uint32_t> set;
        close(nfa_.start, set);
        start_ = intern(set, false);
    }
    return start_;
}

DState *Automaton::entry() {
    if (!entry_) {
        ++epoch_;
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
    pending_.assign(1, state);
    while (!pending_.empty()) {
        const uint32_t at = pending_.back();
        pending_.pop_back();
        if (mark_[at] == epoch_) continue;
        mark_[at] = epoch_;
        const Nfa::State &s = nfa_.states[at];
        if (s.kind != Nfa::Split) {
            out.push_back(at);
            continue;
        }
        for (uint32_t i = s.b; i-- > 0;) pending_.push_back(nfa_.outs[s.a + i]);
    }
}

DState *Automaton::closed(uint32_t target) {
    if (by_target_[target] != kNone) return &states_[by_target_[target]];
    ++epoch_;
    closure_.clear();
    close(target, closure_);
    if (closure_.empty()) return nullptr;
    DState *found = intern(closure_, false);
    by_target_[target] = found->place;
    return found;
}

DState *Automaton::closed(const std::vector<uint32_t> &targets) {
    if (targets.size() == 1) return closed(targets[0]);
    ++epoch_;
    closure_.clear();
    for (uint32_t t : targets) close(t, closure_);
    return closure_.empty() ? nullptr : intern(closure_, false);
}

DState &Automaton::add_state() {
    if (states_.size() >= kMaxStates) throw LimitError("a rule needs more than 262,144 deterministic states");
    DState &d = states_.emplace_back();
    d.place = static_cast<uint32_t>(states_.size() - 1);
    d.id = store_.next_id();
    d.owner = this;
    d.counts_tokens = rule_.counts_tokens;
    d.keeps_set = rule_.keeps_set;
    return d;
}

DState *Automaton::intern(std::vector<uint32_t> &set, bool entry) {
    const bool lone = set.size() == 1 && !entry;
    if (lone) {
        // A state that is no split closes to itself, so its place in by_target_ is that of the set.
        if (by_target_[set[0]] != kNone) return &states_[by_target_[set[0]]];
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
        account(sizeof(DState));
    } else {
        sets_.push_back(set);
        d.set = sets_.back().data();
        interned_.emplace(SetKey{d.set, d.set_size, entry}, &d);
        account(sizeof(DState) + sizeof(std::vector<uint32_t>) + d.set_size * 4 + 64);
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
    calls_.clear();
    behind_key_.clear();
    auto extra = [&]() -> DState::Extra & {
        if (!d.extra) {
            d.extra = std::make_unique<DState::Extra>();
            account(sizeof(DState::Extra));
        }
        return *d.extra;
    };
    if (d.has_steps) {
        extra();
        d.expanded = true;
        return;
    }
    edges_.clear();
    if (is_escape(d) && expand_escape(d)) return;
    if (expand_place(d)) return;
    for (uint32_t i = 0; i < d.set_size; ++i) {
        const Nfa::State &s = nfa_.states[d.set[i]];
        switch (s.kind) {
        case Nfa::Range: edges_.push_back({static_cast<uint8_t>(s.b), static_cast<uint8_t>(s.b >> 8), s.a}); break;
        case Nfa::Bytes: edges_.insert(edges_.end(), nfa_.edges.begin() + s.a, nfa_.edges.begin() + s.a + s.b); break;
        case Nfa::Place: nfa_.each_plain(nfa_.places[s.a], [&](const ByteEdge &e) { edges_.push_back(e); }); break;
        case Nfa::Call:
        case Nfa::Escape:
        case Nfa::Spell: calls_.push_back(d.set[i]); break;
        case Nfa::Token: extra().tokens.push_back({&nfa_.token_sets[s.a], closed(s.b)}); break;
        case Nfa::NewKey:
            behind_key_.push_back(s.a);
            extra().key_grows = extra().key_grows && s.b;
            break;
        case Nfa::Accept:
            if (!d.entry) extra().exits.push_back(s.a);
            break;
        default: break;
        }
    }
    if (!calls_.empty()) {
        extra();
        expand_calls(d, calls_);
    }
    if (!behind_key_.empty()) extra().behind_key = closed(behind_key_);
    d.has_bytes = !edges_.empty();
    expand_row(d, edges_);
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
    std::vector<ByteEdge> &others = edges_;
    others.clear();
    for (uint32_t i = 0; i < d.set_size; ++i) {
        const Nfa::State &s = nfa_.states[d.set[i]];
        if (s.kind == Nfa::Place && !place) place = &nfa_.places[s.a];
        else if (s.kind == Nfa::Range) others.push_back({static_cast<uint8_t>(s.b), static_cast<uint8_t>(s.b >> 8), s.a});
        else return false;
    }
    if (!place) return false;
    if (place->escape != kNone) others.push_back({nfa_.tries[place->trie].lead, nfa_.tries[place->trie].lead, place->escape});
    auto row = std::make_unique<DState::Dense>(place_row(place->trie));
    std::bitset<0x80> forked;
    for (uint32_t i = place->first; i < place->first + place->count; ++i) {
        const NfaFork &fork = nfa_.forks[i];
        if (!fork.raw) continue;
        if (forked[fork.raw]) return false;
        forked.set(fork.raw);
        row->put(fork.raw, fork.raw, fork.to == kNone ? nullptr : closed(fork.to));
    }
    for (const ByteEdge &e : others) {
        if (std::any_of(row->index + e.low, row->index + e.high + 1, [](uint8_t known) { return known != 0; })) return false;
        row->put(e.low, e.high, closed(e.to));
    }
    account(sizeof(DState::Dense) + row->to.size() * sizeof(DState *));
    d.dense = std::move(row);
    d.has_bytes = d.plain = d.expanded = true;
    return true;
}

/// Where the characters lead that leave the words of a trie.
const DState::Dense &Automaton::place_row(uint32_t trie) {
    place_rows_.resize(nfa_.tries.size());
    DState::Dense &row = place_rows_[trie];
    if (row.to.empty()) {
        row.to.push_back(nullptr);
        if (nfa_.tries[trie].tail != kNone)
            for (const ByteEdge &e : nfa_.tries[trie].plain) row.put(e.low, e.high, closed(e.to));
    }
    return row;
}

void Automaton::expand_row(DState &d, std::vector<ByteEdge> &edges) {
    std::vector<DState::Range> &ranges = row_;
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
    std::vector<uint16_t> &cuts = cuts_;
    cuts.clear();
    for (const ByteEdge &e : edges) {
        cuts.push_back(e.low);
        cuts.push_back(static_cast<uint16_t>(e.high + 1));
    }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    std::vector<ByteEdge> &active = active_;
    active.clear();
    size_t next = 0;
    std::vector<uint32_t> &targets = targets_, &last_targets = last_targets_;
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
        std::fill(std::begin(dense->index), std::end(dense->index), uint8_t{0});
        dense->to.push_back(nullptr);
        bool fits = true;
        for (const DState::Range &r : ranges) {
            auto at = std::find(dense->to.begin() + 1, dense->to.end(), r.to);
            if (at == dense->to.end()) {
                fits = dense->to.size() < 256;
                if (!fits) break;
                dense->to.push_back(r.to);
                at = dense->to.end() - 1;
            }
            std::fill(dense->index + r.low, dense->index + r.high + 1, static_cast<uint8_t>(at - dense->to.begin()));
        }
        if (fits) {
            account(sizeof(DState::Dense) + dense->to.size() * sizeof(DState *));
            d.dense = std::move(dense);
            return;
        }
    }
    d.ranges = static_cast<uint16_t>(ranges.size());
    d.ranges_storage = std::make_unique<DState::Range[]>(ranges.size());
    std::copy(ranges.begin(), ranges.end(), d.ranges_storage.get());
    d.row = d.ranges_storage.get();
    account(ranges.size() * sizeof(DState::Range));
}

/// Calls of the same rule go to one site.
void Automaton::expand_calls(DState &d, const std::vector<uint32_t> &calls) {
    const auto same = [](const NfaCall &a, const NfaCall &b) {
        if (a.callee != b.callee || !(a.init == b.init) || a.captures != b.captures) return false;
        for (size_t i = 0; i < std::min(a.arms.size(), b.arms.size()); ++i)
            if (a.arms[i].trailing != b.arms[i].trailing) return false;
        return true;
    };
    sites_.clear();
    returns_.clear();
    const auto site = [&](const NfaCall &call, size_t exits) {
        auto at = std::find_if(sites_.begin(), sites_.end(), [&](const auto &known) { return same(*known.first, call); });
        if (at == sites_.end()) at = sites_.insert(at, {&call, 0});
        at->second = std::max(at->second, exits);
        return static_cast<uint32_t>(at - sites_.begin());
    };
    const auto spell = [&](uint32_t speller, uint32_t to) { returns_.push_back({site(nfa_.spellers[speller], 1), 0, to}); };
    for (uint32_t state : calls) {
        const Nfa::State &s = nfa_.states[state];
        if (s.kind == Nfa::Spell) {
            spell(s.a, s.b);
        } else if (s.kind == Nfa::Escape) {
            nfa_.each_spelling(nfa_.places[s.a], spell);
        } else {
            const NfaCall &call = nfa_.calls[s.a];
            const uint32_t at = site(call, call.arms.size());
            for (uint32_t i = 0; i < call.arms.size(); ++i)
                if (call.arms[i].to != kNone) returns_.push_back({at, i, call.arms[i].to});
        }
    }
    std::sort(returns_.begin(), returns_.end());
    auto next = returns_.begin();
    std::vector<DState *> &to = to_;
    for (uint32_t at = 0; at < sites_.size(); ++at) {
        to.assign(sites_[at].second, nullptr);
        while (next != returns_.end() && next->site == at) {
            const uint32_t exit = next->exit;
            targets_.clear();
            for (; next != returns_.end() && next->site == at && next->exit == exit; ++next) targets_.push_back(next->to);
            to[exit] = closed(targets_);
        }
        add_site(d, *sites_[at].first, to);
    }
}

void Automaton::add_site(DState &d, const NfaCall &call, std::span<DState *const> returns, DState *from) {
    auto site = std::make_unique<CallSite>();
    site->id = store_.next_id();
    site->callee = &store_.automaton(*call.callee);
    site->from = from;
    site->keeps_set = rule_.keeps_set;
    site->measured = d.measured;
    site->room = nfa_.room;
    site->init = call.init;
    for (const std::string &name : call.captures) site->captures.push_back(store_.name_id(name));
    site->returns.reserve(returns.size());
    for (size_t i = 0; i < returns.size(); ++i)
        site->returns.push_back({returns[i], i < call.arms.size() ? call.arms[i].trailing : 0});
    const DState *back = returns.empty() ? nullptr : returns[0];
    site->tail = site->captures.empty() && call.callee->single_exit && back && back->set_size == 1 &&
                 nfa_.states[back->set[0]].kind == Nfa::Accept && nfa_.states[back->set[0]].a == 0;
    account(sizeof(CallSite) + site->returns.size() * sizeof(CallSite::Return));
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
    std::vector<bool> larger = member_sets_[set];
    if (larger.size() <= member) larger.resize(member + 1);
    larger[member] = true;
    const auto [it, fresh] = set_numbers_.try_emplace(std::move(larger), static_cast<uint32_t>(member_sets_.size()));
    if (fresh) {
        if (member_sets_.size() >= kMaxStates) throw LimitError("members came in more than 262,144 orders");
        member_sets_.push_back(it->first);
        account(2 * (sizeof(std::vector<bool>) + it->first.size() / 8) + 64);
    }
    return it->second;
}

std::vector<Resolved> Automaton::resolve_now(DState &d, Counter c) {
    std::vector<Thread> &pending = threads_, &seen = seen_;
    pending.clear();
    seen.clear();
    const uint32_t round = ++rounds_;
    resolved_.resize(nfa_.states.size());
    std::vector<std::pair<Resolved, std::vector<uint32_t>>> groups;
    std::vector<uint32_t> &indifferent = indifferent_;
    indifferent.clear();
    auto spread = [&](uint32_t to, const Resolved &way, bool ticked) {
        if (nfa_.states[to].kind != Nfa::Split) {
            pending.push_back({to, way, ticked});
            return;
        }
        ++epoch_;
        closure_.clear();
        close(to, closure_);
        for (size_t i = closure_.size(); i-- > 0;) pending.push_back({closure_[i], way, ticked});
    };
    for (uint32_t i = d.set_size; i-- > 0;) pending.push_back({d.set[i], {nullptr, Resolved::Keep, {}}, false});
    while (!pending.empty()) {
        Thread t = pending.back();
        pending.pop_back();
        const auto known = [&](const Thread &s) {
            return s.state == t.state && s.way.how == t.way.how && s.way.value == t.way.value && s.ticked == t.ticked;
        };
        // Nearly all states come once; only then they need no look at the others.
        if (resolved_[t.state] == round && std::any_of(seen.begin(), seen.end(), known)) continue;
        resolved_[t.state] = round;
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
            const std::vector<bool> &there = member_sets_[now.left];
            if (s.b >= there.size() || !there[s.b]) spread(s.a, t.way, t.ticked);
        } else if (s.kind == Nfa::Mark) {
            spread(s.a, {nullptr, Resolved::Set, {with_member(now.left, s.b), 0}}, t.ticked);
        } else if (s.kind == Nfa::All || s.kind == Nfa::Room) {
            const std::vector<bool> &there = member_sets_[now.left], &wanted = nfa_.sets[s.b];
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
