// The automata of sequences, choices, characters, literals and repetitions.

#include "automaton/nfa_builder.h"

#include <algorithm>

namespace dovetail {

namespace {

constexpr size_t kInlineBytes = 48;  // a leaf rule with this little code is copied into its callers

bool is_counter_free(const Ast &ast) {
    return std::none_of(ast.nodes.begin(), ast.nodes.end(), [](const Ast::Node &n) {
        return n.op == Code::Count || n.op == Code::CountParam || n.op == Code::Text || n.op == Code::AnyOrder || n.op == Code::Measured;
    });
}

}  // namespace

uint32_t NfaBuilder::add(Nfa::Kind kind, uint32_t a, uint32_t b) {
    if (nfa_.states.size() >= limit_) throw LimitError("a rule or a part of it needs more than " + std::to_string(limit_) + " states");
    nfa_.states.push_back({kind, a, b});
    return static_cast<uint32_t>(nfa_.states.size() - 1);
}

uint32_t NfaBuilder::bytes(std::span<const ByteEdge> edges) {
    if (edges.empty()) return kDead;
    if (edges.size() == 1) return range(edges[0].low, edges[0].high, edges[0].to);
    const uint32_t at = static_cast<uint32_t>(nfa_.edges.size());
    nfa_.edges.insert(nfa_.edges.end(), edges.begin(), edges.end());
    return add(Nfa::Bytes, at, static_cast<uint32_t>(edges.size()));
}

uint32_t NfaBuilder::split(std::span<const uint32_t> outs) {
    live_.clear();
    for (uint32_t o : outs)
        if (o != kDead && std::find(live_.begin(), live_.end(), o) == live_.end()) live_.push_back(o);
    if (live_.empty()) return kDead;
    if (live_.size() == 1) return live_[0];
    const uint32_t s = reserve_split();
    fill_split(s, live_);
    return s;
}

uint32_t NfaBuilder::reserve_split() { return add(Nfa::Split, 0, 0); }

void NfaBuilder::fill_split(uint32_t state, std::span<const uint32_t> outs) {
    nfa_.states[state].a = static_cast<uint32_t>(nfa_.outs.size());
    for (uint32_t o : outs)
        if (o != kDead) nfa_.outs.push_back(o);
    nfa_.states[state].b = static_cast<uint32_t>(nfa_.outs.size()) - nfa_.states[state].a;
    may_dead_end_ = may_dead_end_ || nfa_.states[state].b == 0;
}

uint32_t NfaBuilder::token(TokenSet set, uint32_t to) {
    if (to == kDead || !set.has_any(vocab_)) return kDead;
    nfa_.token_sets.push_back(std::move(set));
    return add(Nfa::Token, static_cast<uint32_t>(nfa_.token_sets.size() - 1), to);
}

uint32_t NfaBuilder::continuation(const Ranges &ranges, int bytes_left, uint32_t next, std::map<std::pair<int, Ranges>, uint32_t> &memo) {
    if (bytes_left == 0) return next;
    const auto [it, fresh] = memo.try_emplace({bytes_left, ranges}, kDead);
    if (!fresh) return it->second;
    const int shift = 6 * (bytes_left - 1);
    const uint32_t unit = 1u << shift;
    std::vector<ByteEdge> edges;
    // Digits whose remainders are the same set share an edge; a run of full digits is taken at once.
    auto emit = [&](uint32_t first, uint32_t last, const Ranges &rest) {
        const uint32_t to = continuation(rest, bytes_left - 1, next, memo);
        if (!edges.empty() && edges.back().to == to && edges.back().high + 1u == 0x80 + first)
            edges.back().high = static_cast<uint8_t>(0x80 + last);
        else edges.push_back({static_cast<uint8_t>(0x80 + first), static_cast<uint8_t>(0x80 + last), to});
    };
    Ranges rest;
    uint32_t digit = kNone;
    auto flush = [&] {
        if (digit != kNone) emit(digit, digit, rest);
        rest.clear();
        digit = kNone;
    };
    for (auto [low, high] : ranges) {
        while (low <= high) {
            const uint32_t d = low >> shift, end = ((d + 1) << shift) - 1;
            if (d != digit) flush();
            if ((low & (unit - 1)) == 0 && high >= end) {
                const uint32_t last = ((high + 1) >> shift) - 1;
                emit(d, last, {{0, unit - 1}});
                low = (last + 1) << shift;
                if (low == 0) break;
            } else {
                digit = d;
                rest.emplace_back(low & (unit - 1), std::min(high, end) & (unit - 1));
                low = end + 1;
            }
        }
    }
    flush();
    return memo[{bytes_left, ranges}] = bytes(edges);
}

uint32_t NfaBuilder::chars(std::span<const Ast::Range> ranges, uint32_t next) {
    std::vector<ByteEdge> edges;
    Ranges wide;
    for (const auto &[low, high] : ranges) {
        if (low < 0x80) edges.push_back({static_cast<uint8_t>(low), static_cast<uint8_t>(std::min(high, 0x7Fu)), next});
        if (high >= 0x80) wide.emplace_back(std::max(low, 0x80u), high);
    }
    if (!wide.empty()) {
        const std::vector<ByteEdge> &more = wide_chars(std::move(wide), next);
        edges.insert(edges.end(), more.begin(), more.end());
    }
    return bytes(edges);
}

/// All characters beyond ASCII: what most strings take.
std::vector<ByteEdge> NfaBuilder::all_wide_chars(uint32_t next) {
    const uint32_t one = range(0x80, 0xBF, next), two = range(0x80, 0xBF, one), three = range(0x80, 0xBF, two);
    return {{0xC2, 0xDF, one}, {0xE0, 0xE0, range(0xA0, 0xBF, one)}, {0xE1, 0xEC, two},   {0xED, 0xED, range(0x80, 0x9F, one)},
            {0xEE, 0xEF, two}, {0xF0, 0xF0, range(0x90, 0xBF, two)}, {0xF1, 0xF3, three}, {0xF4, 0xF4, range(0x80, 0x8F, two)}};
}

/// Characters beyond ASCII.
const std::vector<ByteEdge> &NfaBuilder::wide_chars(Ranges ranges, uint32_t next) {
    const auto [known, fresh] = wide_.try_emplace({next, std::move(ranges)});
    std::vector<ByteEdge> &edges = known->second;
    if (!fresh) return edges;
    if (known->first.second == Ranges{{0x80, 0xD7FF}, {0xE000, 0x10FFFF}}) return edges = all_wide_chars(next);
    static constexpr struct {
        uint32_t low, high;
        int more;
        uint8_t lead;
    } kForms[] = {{0x80, 0x7FF, 1, 0xC0}, {0x800, 0xD7FF, 2, 0xE0}, {0xE000, 0xFFFF, 2, 0xE0}, {0x10000, 0x10FFFF, 3, 0xF0}};
    std::map<std::pair<int, Ranges>, uint32_t> memo;
    for (const auto &form : kForms) {
        const int shift = 6 * form.more;
        // Cut the ranges by lead byte, then let the continuation bytes take the rest.
        std::map<uint32_t, Ranges> by_lead;
        for (const auto &[low, high] : known->first.second) {
            const uint32_t first = std::max(low, form.low), last = std::min(high, form.high);
            if (low > form.high || high < form.low || first > last) continue;
            for (uint32_t lead = first >> shift; lead <= last >> shift; ++lead) {
                const uint32_t base = lead << shift;
                by_lead[lead].emplace_back(std::max(first, base) - base, std::min(last, base + (1u << shift) - 1) - base);
            }
        }
        for (const auto &[lead, rest] : by_lead) {
            const uint32_t to = continuation(rest, form.more, next, memo);
            const auto byte = static_cast<uint8_t>(form.lead | lead);
            if (!edges.empty() && edges.back().to == to && edges.back().high + 1 == byte) edges.back().high = byte;
            else edges.push_back({byte, byte, to});
        }
    }
    return edges;
}

uint32_t NfaBuilder::literal(std::string_view text, uint32_t next) {
    for (size_t i = text.size(); i-- > 0;) {
        const auto b = static_cast<uint8_t>(text[i]);
        next = range(b, b, next);
    }
    return next;
}

uint32_t NfaBuilder::special(std::string_view text, uint32_t next) {
    std::vector<uint32_t> after(text.size() + 1);  // the state behind the first i bytes
    after[text.size()] = next;
    std::vector<uint32_t> specials;
    for (size_t i = text.size(); i-- > 0;) {
        const auto b = static_cast<uint8_t>(text[i]);
        after[i] = range(b, b, after[i + 1]);
        specials.clear();
        vocab_.specials_at(text, i, specials);
        if (specials.empty()) continue;
        std::vector<uint32_t> ways{after[i]};
        for (uint32_t id : specials) ways.push_back(token({false, {id}}, after[i + vocab_.bytes(id).size()]));
        after[i] = split(ways);
    }
    return after[0];
}

uint32_t NfaBuilder::node(const Rule &rule, const Ast &ast, uint32_t at, uint32_t next) {
    if (next == kDead) return kDead;
    const Ast::Node &n = ast.nodes[at];
    switch (n.op) {
    case Code::Lit: return literal(n.text, next);
    case Code::Special: return special(n.text, next);
    case Code::NewKey: return add(Nfa::NewKey, next, n.flag);
    case Code::Chars: return chars(ast.ranges(n), next);
    case Code::Bytes: {
        std::vector<ByteEdge> edges;
        for (const auto &[low, high] : ast.ranges(n)) edges.push_back({static_cast<uint8_t>(low), static_cast<uint8_t>(high), next});
        return bytes(edges);
    }
    case Code::Seq:
        for (size_t i = n.count; i-- > 0;) next = node(rule, ast, ast.kids(n)[i], next);
        return next;
    case Code::Alt: {
        std::vector<uint32_t> ways;
        for (uint32_t k : ast.kids(n)) ways.push_back(node(rule, ast, k, next));
        return split(ways);
    }
    case Code::Loop:
    case Code::Unroll: return repeat(rule, ast, n, next);
    case Code::Count:
    case Code::CountParam: return count(rule, ast, n, next);
    case Code::Call:
    case Code::Branch: return call(rule, ast, n, next);
    case Code::Tokens: return token(token_set(ast, at, vocab_), next);
    case Code::Without: return without(rule, ast, n, next);
    case Code::AnyOrder:
    case Code::Measured:
    case Code::Text: break;
    }
    throw InputError("free text, measured text and members in any order must be rules of their own");
}

uint32_t NfaBuilder::repeat(const Rule &rule, const Ast &ast, const Ast::Node &n, uint32_t next) {
    const uint32_t body = ast.kids(n)[0];
    uint32_t at = next;
    if (n.bounds.left == kUnbounded) {
        at = reserve_split();
        fill_split(at, {node(rule, ast, body, at), next});
    } else {
        for (uint32_t i = n.bounds.need; i < n.bounds.left; ++i) {
            const uint32_t once = node(rule, ast, body, at);
            if (once == at || once == kDead) break;  // a body of nothing adds no state however often it comes
            at = split({once, next});
        }
    }
    for (uint32_t i = 0; i < n.bounds.need; ++i) {
        const uint32_t once = node(rule, ast, body, at);
        if (once == at || once == kDead) return once;
        at = once;
    }
    return at;
}

uint32_t NfaBuilder::count(const Rule &rule, const Ast &ast, const Ast::Node &n, uint32_t next) {
    if (unroll_ && n.op == Code::CountParam) throw InputError("a repetition that callers bound cannot be copied out");
    if (unroll_) return repeat(rule, ast, n, next);
    const bool nullable = is_nullable(ast, ast.kids(n)[0], false, facts_of(rule));
    const uint32_t head = reserve_split();
    const uint32_t body = node(rule, ast, ast.kids(n)[0], head);
    if (body == kDead && n.op == Code::Count) {
        may_dead_end_ = true;  // the split that was reserved
        return n.bounds.need == 0 ? next : kDead;
    }
    fill_split(head, {body == kDead ? kDead : add(Nfa::Tick, body), add(Nfa::Leave, next, nullable)});
    if (n.op == Code::CountParam) return head;
    nfa_.bounds.push_back(n.bounds);
    return add(Nfa::Enter, head, static_cast<uint32_t>(nfa_.bounds.size() - 1));
}

/// Members in any order that nothing can separate: one of them at most.
uint32_t NfaBuilder::lone_member(const Rule &rule, const Ast &ast, const Ast::Node &n, uint32_t close) {
    const std::vector<bool> &required = ast.lists(n).required;
    const auto needed = std::count(required.begin(), required.end(), true);
    std::vector<uint32_t> ways;
    if (needed == 0) ways.push_back(close);
    for (uint32_t i = 0; i < n.slot && !n.flag; ++i)
        if (needed == (required[i] ? 1 : 0)) ways.push_back(node(rule, ast, ast.kids(n)[i], close));
    if (needed == 0 && !n.flag && n.count == n.slot + 3) ways.push_back(node(rule, ast, ast.kids(n)[n.slot], close));
    return split(ways);
}

uint32_t NfaBuilder::any_order(const Rule &rule, const Ast &ast, const Ast::Node &n, uint32_t next) {
    const std::span<const uint32_t> kids = ast.kids(n);
    const uint32_t close = node(rule, ast, kids[n.count - 1], next);
    // What may come depends on what can still come, so a part that matches nothing must be known beforehand.
    const bool doubtful = std::any_of(ast.nodes.begin(), ast.nodes.end(), [](const Ast::Node &k) { return k.op == Code::Without; });
    const auto dead = [&](uint32_t kid) { return doubtful && !can_match(rule, ast, kid, vocab_); };
    if (dead(kids[n.count - 2]) || node(rule, ast, kids[n.count - 2], close) == kDead) return lone_member(rule, ast, n, close);
    const uint32_t again = reserve_split();  // behind a member
    std::vector<bool> live(n.slot);
    std::vector<uint32_t> ways;
    for (uint32_t i = 0; i < n.slot; ++i) {
        const uint32_t member = dead(kids[i]) ? kDead : node(rule, ast, kids[i], add(Nfa::Mark, again, i));
        if (member == kDead) continue;
        live[i] = true;
        ways.push_back(add(Nfa::Fresh, member, i));
    }
    const bool has_extra = n.count == n.slot + 3 && !dead(kids[n.slot]);
    const uint32_t extra = has_extra ? node(rule, ast, kids[n.slot], again) : kDead;
    ways.push_back(extra);
    const uint32_t choice = split(ways);
    uint32_t more = choice == kDead ? kDead : node(rule, ast, kids[n.count - 2], choice);
    auto guarded = [&](Nfa::Kind kind, std::vector<bool> set, uint32_t to) {
        if (to == kDead) return kDead;
        nfa_.sets.push_back(std::move(set));
        return add(kind, to, static_cast<uint32_t>(nfa_.sets.size() - 1));
    };
    // Where nothing else may come between, a separator must be followed by a member that was not there yet.
    if (extra == kDead) more = guarded(Nfa::Room, live, more);
    const uint32_t end = guarded(Nfa::All, ast.lists(n).required, close);
    may_dead_end_ = may_dead_end_ || end == kDead;
    fill_split(again, {end, more});
    return split({end, n.flag ? more : choice});
}

uint32_t NfaBuilder::add_call(Rule *callee, Counter bounds, std::span<const NfaCall::Arm> arms) {
    const auto first = static_cast<uint32_t>(nfa_.all_arms.size());
    nfa_.all_arms.insert(nfa_.all_arms.end(), arms.begin(), arms.end());
    nfa_.calls.push_back({callee, bounds, kNone, first, static_cast<uint32_t>(arms.size())});
    return add(Nfa::Call, static_cast<uint32_t>(nfa_.calls.size() - 1));
}

uint32_t NfaBuilder::unbranched_call(Rule *callee, Counter bounds, uint32_t next) {
    const bool need = bounds.need > 0;
    if (next == kDead || !callee->matches(bounds)) return kDead;
    return split({known_call(callee, bounds, next), callee->nullable[need] ? next : kDead});
}

uint32_t NfaBuilder::known_call(Rule *callee, Counter bounds, uint32_t next) {
    const uint64_t hash = mix(mix(callee->id, static_cast<uint64_t>(bounds.left) << 32 | bounds.need), next);
    const KnownCall *known = known_calls_.find(hash, [&](const KnownCall &one) {
        const NfaCall &call = nfa_.calls[nfa_.states[one.state].a];
        return call.callee == callee && call.init == bounds && nfa_.arms(call)[0].to == next;
    });
    if (known) return known->state;
    const NfaCall::Arm arm{next, 0};
    return known_calls_.add({hash, add_call(callee, bounds, {&arm, 1})}).state;
}

/// The tree of a short rule, which is copied into its callers.
const Ast &NfaBuilder::body_of(const Rule &callee) { return bodies_.try_emplace(&callee, callee.code).first->second; }

uint32_t NfaBuilder::call(const Rule &rule, const Ast &ast, const Ast::Node &n, uint32_t next) {
    Rule *callee = rule.calls[n.slot];
    const bool need = n.bounds.need > 0;
    if (!callee->matches(n.bounds)) return kDead;
    if (n.op == Code::Call && callee->calls.empty() && callee->code.size() <= kInlineBytes) {
        const Ast &body = body_of(*callee);
        if (is_counter_free(body)) return node(*callee, body, body.root, next);
    }
    if (n.op == Code::Call) return unbranched_call(callee, n.bounds, next);
    const Ast::Lists &lists = ast.lists(n);
    std::vector<NfaCall::Arm> arms;
    bool live = false;
    for (const Ast::Arm &arm : lists.arms) {
        arms.push_back({arm.node == kNone ? kDead : node(rule, ast, arm.node, next), arm.trailing});
        live = live || arms.back().to != kDead;
    }
    if (!live) return kDead;
    const uint32_t made = add_call(callee, n.bounds, arms);
    if (!lists.names.empty()) {
        nfa_.calls.back().captures = static_cast<uint32_t>(nfa_.names.size());
        nfa_.names.emplace_back(lists.names.begin(), lists.names.end());
    }
    return split({made, callee->nullable[need] ? arms[0].to : kDead});
}

}  // namespace dovetail
