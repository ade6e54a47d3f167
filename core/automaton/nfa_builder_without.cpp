// Text in which some strings do not occur: the product of its automaton with one that looks for them.
#include <unordered_map>

#include "automaton/nfa_builder.h"
#include "base/string_set.h"

namespace dovetail {

namespace {

constexpr uint32_t kMaxExcludedStates = 1u << 17;  // of what strings are excluded from

}  // namespace

uint32_t NfaBuilder::without(const Rule &rule, const Ast &ast, const Ast::Node &n, uint32_t next) {
    Nfa inner;
    // What may still come depends on the count too, so the count is part of the state.
    NfaBuilder sub(inner, vocab_, true, kMaxExcludedStates);
    const uint32_t start = sub.node(rule, ast, ast.kids(n)[0], sub.accept(0));
    if (start == kDead) return kDead;
    may_dead_end_ = true;
    const StringSet bad(ast.lists(n).names);
    if (bad.hit(0)) return kDead;  // the empty string is excluded: nothing is without it
    std::unordered_map<uint64_t, uint32_t> made;
    std::vector<std::pair<uint32_t, uint32_t>> pending;
    auto pair = [&](uint32_t state, uint32_t node) {
        const auto [it, fresh] = made.try_emplace(uint64_t{state} << 32 | node, 0);
        if (fresh) {
            if (made.size() > 4 * kMaxExcludedStates) throw LimitError("excluded strings make a rule too large");
            it->second = reserve_split();
            pending.emplace_back(state, node);
        }
        return it->second;
    };
    const uint32_t first = pair(start, 0);
    while (!pending.empty()) {
        const auto [state, node] = pending.back();
        pending.pop_back();
        const uint32_t self = made[uint64_t{state} << 32 | node];
        const Nfa::State s = inner.states[state];
        auto cross = [&, from = node](std::vector<ByteEdge> &out, const ByteEdge &e) {
            for (int b = e.low; b <= e.high; ++b) {
                const auto byte = static_cast<uint8_t>(b);
                const uint32_t to = bad.next(from, byte);
                if (!bad.hit(to)) out.push_back({byte, byte, pair(e.to, to)});
            }
        };
        switch (s.kind) {
        case Nfa::Range:
        case Nfa::Bytes: {
            std::vector<ByteEdge> edges, merged;
            if (s.kind == Nfa::Range) cross(edges, {static_cast<uint8_t>(s.b), static_cast<uint8_t>(s.b >> 8), s.a});
            else
                for (uint32_t i = 0; i < s.b; ++i) cross(edges, inner.edges[s.a + i]);
            for (const ByteEdge &e : edges) {
                if (!merged.empty() && merged.back().to == e.to && merged.back().high + 1 == e.low) merged.back().high = e.high;
                else merged.push_back(e);
            }
            fill_split(self, {bytes(merged)});
            break;
        }
        case Nfa::Split: {
            std::vector<uint32_t> outs;
            for (uint32_t i = 0; i < s.b; ++i) outs.push_back(pair(inner.outs[s.a + i], node));
            fill_split(self, outs);
            break;
        }
        case Nfa::Enter:
            nfa_.bounds.push_back(inner.bounds[s.b]);
            fill_split(self, {add(Nfa::Enter, pair(s.a, node), static_cast<uint32_t>(nfa_.bounds.size() - 1))});
            break;
        case Nfa::Tick:
        case Nfa::Leave: fill_split(self, {add(s.kind, pair(s.a, node), s.b)}); break;
        case Nfa::Short:
        case Nfa::Full:
        case Nfa::Fresh:
        case Nfa::Mark:
        case Nfa::All:
        case Nfa::Room:
        case Nfa::Accept: fill_split(self, {next}); break;
        case Nfa::Token: {
            // Only special tokens that stand for their text in a literal get here.
            const TokenSet &set = inner.token_sets[s.a];
            if (set.exclude) throw InputError("excluded strings need a body without calls and tokens");
            std::vector<uint32_t> ways;
            for (uint32_t id : set.ids) {
                uint32_t to = node;
                for (const char c : vocab_.bytes(id))
                    if (!bad.hit(to)) to = bad.next(to, static_cast<uint8_t>(c));
                if (!bad.hit(to)) ways.push_back(token({false, {id}}, pair(s.b, to)));
            }
            fill_split(self, ways);
            break;
        }
        case Nfa::NewKey:
        case Nfa::Call: throw InputError("excluded strings need a body without calls and tokens");
        }
    }
    return first;
}

}  // namespace dovetail
