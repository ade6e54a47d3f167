// Builds the nondeterministic automaton of one rule, and takes left recursion out of it.

#include "automaton/nfa.h"

#include <algorithm>
#include <cassert>

#include "automaton/nfa_builder.h"

namespace dovetail {

bool TokenSet::has(uint32_t token, const Vocab &vocab) const {
    const bool listed = std::binary_search(ids.begin(), ids.end(), token);
    if (!exclude) return listed;
    return !listed && !vocab.is_stop(token) && !vocab.bytes(token).empty();
}

bool TokenSet::has_any(const Vocab &vocab) const {
    if (!exclude) return !ids.empty();
    for (uint32_t token = 0; token < vocab.size(); ++token)
        if (has(token, vocab)) return true;
    return false;
}

TokenSet token_set(const Ast &ast, uint32_t node, const Vocab &vocab) {
    TokenSet set{ast.nodes[node].flag, {}};
    for (const Ast::TokenName &t : ast.lists(ast.nodes[node]).tokens) {
        const uint32_t id = t.id == kNone ? vocab.find(t.text) : t.id;
        if (id == kNone) throw InputError("the vocabulary has no token \"" + std::string(t.text) + "\"");
        if (id >= vocab.size())
            throw InputError("token id " + std::to_string(id) + " is outside the vocabulary of " + std::to_string(vocab.size()) +
                             " tokens");
        set.ids.push_back(id);
    }
    std::sort(set.ids.begin(), set.ids.end());
    set.ids.erase(std::unique(set.ids.begin(), set.ids.end()), set.ids.end());
    return set;
}

void Nfa::reserve(size_t code) {
    constexpr size_t kFew = 32;
    states.reserve(code);
    edges.reserve(kFew);
    outs.reserve(kFew);
    calls.reserve(kFew);
    all_arms.reserve(kFew);
}

void Nfa::shrink() {
    states.shrink_to_fit();
    edges.shrink_to_fit();
    outs.shrink_to_fit();
    calls.shrink_to_fit();
    all_arms.shrink_to_fit();
}

size_t Nfa::memory() const {
    size_t bytes = states.size() * sizeof(State) + edges.size() * sizeof(ByteEdge) + outs.size() * 4 + bounds.size() * sizeof(Counter) +
                   counter_live.size() / 8;
    for (const std::vector<bool> &set : sets) bytes += sizeof(set) + set.size() / 8;
    bytes += calls.size() * sizeof(NfaCall) + all_arms.size() * sizeof(NfaCall::Arm);
    bytes += measures.size() * sizeof(Measure);
    for (const TokenSet &t : token_sets) bytes += sizeof(TokenSet) + t.ids.size() * 4;
    return bytes;
}

namespace {

constexpr uint32_t kMaxSpineStates = 1u << 17;  // counts are copied out there

/// Left recursion, taken out of the automaton.
///
/// A derivation of a left-recursive rule is a spine: some base at the bottom, then one return after another into the
/// rules that called on their left. A spine is regular, so one automaton can follow it upwards: it holds the bodies of
/// the whole group, the end of a body leads to wherever that rule was called on the left, and only the rule that was
/// entered may end. Calls that come after a consumed byte stay ordinary calls.
class SpineBuilder {
  public:
    SpineBuilder(Nfa &nfa, const Vocab &vocab, const Rule &entered)
        : nfa_(nfa), build_(nfa, vocab, true, kMaxSpineStates), entered_(entered), group_(entered.left_group) {}

    uint32_t build() {
        std::vector<uint32_t> starts, ends;
        for (size_t i = 0; i < group_.size(); ++i) ends.push_back(build_.reserve_split());
        for (size_t i = 0; i < group_.size(); ++i) {
            const Ast ast(group_[i]->code);
            starts.push_back(build_.node(*group_[i], ast, ast.root, ends[i]));
        }
        std::vector<std::vector<uint32_t>> returns(group_.size());
        std::vector<std::vector<uint32_t>> bases(group_.size());
        std::vector<std::vector<uint32_t>> callees(group_.size());
        for (size_t i = 0; i < group_.size(); ++i)
            if (starts[i] != kDead) sort_left(starts[i], returns, bases[i], callees[i]);
        std::vector<uint32_t> first;
        for (uint32_t member : reached_on_the_left(callees)) first.insert(first.end(), bases[member].begin(), bases[member].end());
        for (size_t i = 0; i < group_.size(); ++i) {
            if (group_[i] == &entered_) returns[i].push_back(build_.accept(0));
            build_.fill_split(ends[i], returns[i]);
        }
        if (entered_.nullable[0]) first.push_back(build_.accept(0));
        return build_.split(first);
    }

  private:
    uint32_t member(const Rule *rule) const {
        const auto it = std::find(group_.begin(), group_.end(), rule);
        return it == group_.end() ? kNone : static_cast<uint32_t>(it - group_.begin());
    }

    /// Sorts what a body can do before it has consumed anything into left calls and the rest.
    void sort_left(uint32_t start, std::vector<std::vector<uint32_t>> &returns, std::vector<uint32_t> &bases,
                   std::vector<uint32_t> &callees) const {
        std::vector<bool> seen(nfa_.states.size());
        std::vector<uint32_t> pending{start};
        while (!pending.empty()) {
            const uint32_t at = pending.back();
            pending.pop_back();
            if (seen[at]) continue;
            seen[at] = true;
            const Nfa::State &s = nfa_.states[at];
            if (s.kind == Nfa::Split) {
                // The end of the own body is reached here only by matching nothing, which callers skip themselves.
                nfa_.successors(at, [&](uint32_t to) { pending.push_back(to); });
            } else if (s.kind == Nfa::Call && member(nfa_.calls[s.a].callee) != kNone) {
                const NfaCall &call = nfa_.calls[s.a];
                if (call.captures != kNone) throw InputError("a capture cannot be the left part of a left recursion");
                const uint32_t callee = member(call.callee);
                returns[callee].push_back(nfa_.arms(call)[0].to);
                callees.push_back(callee);
            } else {
                bases.push_back(at);
            }
        }
    }

    std::vector<uint32_t> reached_on_the_left(const std::vector<std::vector<uint32_t>> &callees) const {
        std::vector<uint32_t> reached{member(&entered_)};
        for (size_t i = 0; i < reached.size(); ++i)
            for (uint32_t c : callees[reached[i]])
                if (std::find(reached.begin(), reached.end(), c) == reached.end()) reached.push_back(c);
        return reached;
    }

    Nfa &nfa_;
    NfaBuilder build_;
    const Rule &entered_;
    const std::vector<Rule *> &group_;
};

/// Marks the states that reach a marked one by states that pass, going backwards from those that are marked.
template <class Passes> void spread(const Nfa &nfa, Passes passes, std::vector<bool> &marked) {
    const uint32_t n = static_cast<uint32_t>(nfa.states.size());
    std::vector<uint32_t> first(n + 1), before;  // the states before s are before[first[s], first[s + 1])
    auto each_edge = [&](auto visit) {
        for (uint32_t s = 0; s < n; ++s)
            if (passes(nfa.states[s])) nfa.successors(s, [&](uint32_t to) { visit(s, to); });
    };
    each_edge([&](uint32_t, uint32_t to) { ++first[to]; });
    for (uint32_t s = 0, sum = 0; s <= n; ++s) first[s] = sum += first[s];
    before.resize(first[n]);
    each_edge([&](uint32_t from, uint32_t to) { before[--first[to]] = from; });
    std::vector<uint32_t> pending;
    for (uint32_t s = 0; s < n; ++s)
        if (marked[s]) pending.push_back(s);
    while (!pending.empty()) {
        const uint32_t s = pending.back();
        pending.pop_back();
        for (uint32_t i = first[s]; i < first[s + 1]; ++i) {
            if (marked[before[i]]) continue;
            marked[before[i]] = true;
            pending.push_back(before[i]);
        }
    }
}

/// Marks the states that hold or that reach, by states that pass, one that holds. Most states are built after what
/// follows them, those of free text before it: a sweep each way does nearly all, and only loops ask for more.
template <class Holds, class Passes> std::vector<bool> reaching(const Nfa &nfa, Holds holds, Passes passes) {
    constexpr int kSweeps = 2;
    const uint32_t n = static_cast<uint32_t>(nfa.states.size());
    std::vector<bool> marked(n);
    uint32_t others = n;
    bool changed = true;
    for (int sweep = 0; changed && sweep < kSweeps; ++sweep) {
        changed = false;
        auto look = [&](uint32_t s) {
            if (marked[s]) return;
            bool mark = holds(nfa.states[s]);
            if (!mark && passes(nfa.states[s])) nfa.successors(s, [&](uint32_t to) { mark = mark || marked[to]; });
            if (!mark) return;
            marked[s] = changed = true;
            --others;
        };
        for (uint32_t s = 0; s < n; ++s) look(s);
        if (others == 0) return marked;
        for (uint32_t s = n; s-- > 0;) look(s);
    }
    if (changed) spread(nfa, passes, marked);
    return marked;
}

std::vector<bool> live_states(const Nfa &nfa) {
    return reaching(nfa, [](const Nfa::State &s) { return s.kind == Nfa::Accept; }, [](const Nfa::State &) { return true; });
}

[[maybe_unused]] bool is_live(const Nfa &nfa) {
    const std::vector<bool> live = live_states(nfa);
    return std::find(live.begin(), live.end(), false) == live.end();
}

/// Cuts the edges into states that cannot reach an end, so that no walk enters a dead end.
void trim(Nfa &nfa) {
    const std::vector<bool> live = live_states(nfa);
    if (std::find(live.begin(), live.end(), false) == live.end()) return;
    const auto cut = [&](uint32_t &to) {
        if (to != kNone && !live[to]) to = kNone;
    };
    for (NfaCall::Arm &arm : nfa.all_arms) cut(arm.to);
    for (Nfa::State &s : nfa.states) {
        if (s.kind == Nfa::Bytes) {
            uint32_t kept = s.a;
            for (uint32_t i = s.a; i < s.a + s.b; ++i)
                if (live[nfa.edges[i].to]) nfa.edges[kept++] = nfa.edges[i];
            s.b = kept - s.a;
        } else if (s.kind == Nfa::Split) {
            uint32_t kept = s.a;
            for (uint32_t i = s.a; i < s.a + s.b; ++i)
                if (live[nfa.outs[i]]) nfa.outs[kept++] = nfa.outs[i];
            s.b = kept - s.a;
        }
    }
}

void find_counter_live(Nfa &nfa, bool always) {
    const auto counts = [](const Nfa::State &s) { return is_step(s.kind) && s.kind != Nfa::Enter; };
    if (always || std::none_of(nfa.states.begin(), nfa.states.end(), counts)) nfa.counter_live.assign(nfa.states.size(), always);
    else nfa.counter_live = reaching(nfa, counts, [](const Nfa::State &s) { return s.kind != Nfa::Enter; });
}

}  // namespace

bool can_match(const Rule &rule, const Ast &ast, uint32_t node, const Vocab &vocab) {
    Nfa nfa;
    NfaBuilder build(nfa, vocab);
    const uint32_t start = build.node(rule, ast, node, build.accept(0));
    return start != kDead && live_states(nfa)[start];
}

Nfa build_nfa(const Rule &rule, const Vocab &vocab) {
    Nfa nfa;
    bool may_dead_end = true;
    if (!rule.left_group.empty()) {
        nfa.start = SpineBuilder(nfa, vocab, rule).build();
    } else {
        NfaBuilder build(nfa, vocab);
        const Ast ast(rule.code);
        nfa.reserve(rule.code.size());
        const Ast::Node &root = ast.nodes[ast.root];
        if (root.op == Code::Text) nfa.start = build.free_text(root, ast.lists(root));
        else if (root.op == Code::AnyOrder) nfa.start = build.any_order(rule, ast, root, build.accept(0));
        else if (root.op == Code::Measured) nfa.start = build.measured(rule, ast, root, build.accept(0));
        else nfa.start = build.node(rule, ast, ast.root, build.accept(0));
        may_dead_end = root.op == Code::Text || build.may_dead_end();
    }
    if (nfa.start == kDead) nfa.start = NfaBuilder(nfa, vocab).reserve_split();
    if (may_dead_end) trim(nfa);
    else assert(is_live(nfa));
    nfa.shrink();
    find_counter_live(nfa, rule.counts_tokens);
    return nfa;
}

}  // namespace dovetail
