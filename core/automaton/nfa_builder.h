// Builds automata back to front: every function takes the state that follows and returns the state that begins.
#pragma once

#include <initializer_list>
#include <map>
#include <span>
#include <string_view>
#include <unordered_map>

#include "grammar/ast.h"
#include "automaton/nfa.h"
#include "grammar/rule.h"
#include "base/table.h"
#include "vocabulary/vocab.h"

namespace dovetail {

/// The state of a piece that matches nothing.
inline constexpr uint32_t kDead = kNone;

class NfaBuilder {
  public:
    /// `unroll`: without counters, for automata that go round in one frame.
    NfaBuilder(Nfa &nfa, const Vocab &vocab, bool unroll = false, uint32_t limit = kMaxNfaStates)
        : nfa_(nfa), vocab_(vocab), unroll_(unroll), limit_(limit) {}

    uint32_t add(Nfa::Kind kind, uint32_t a, uint32_t b = 0);
    uint32_t accept(uint32_t exit) { return add(Nfa::Accept, exit); }
    uint32_t range(uint8_t low, uint8_t high, uint32_t to) { return add(Nfa::Range, to, low | static_cast<uint32_t>(high) << 8); }
    uint32_t bytes(std::span<const ByteEdge> edges);
    uint32_t split(std::span<const uint32_t> outs);
    uint32_t split(std::initializer_list<uint32_t> outs) { return split(std::span(outs.begin(), outs.size())); }
    uint32_t reserve_split();
    void fill_split(uint32_t state, std::span<const uint32_t> outs);
    void fill_split(uint32_t state, std::initializer_list<uint32_t> outs) { fill_split(state, std::span(outs.begin(), outs.size())); }
    uint32_t token(TokenSet set, uint32_t to);

    uint32_t chars(std::span<const Ast::Range> ranges, uint32_t next);
    uint32_t literal(std::string_view text, uint32_t next);
    uint32_t special(std::string_view text, uint32_t next);
    /// A whole rule of free text, see code.h; its accepts are the exits.
    uint32_t free_text(const Ast::Node &node, const Ast::Lists &lists);
    /// A whole rule of members in any order.
    uint32_t any_order(const Rule &rule, const Ast &ast, const Ast::Node &node, uint32_t next);
    /// A whole rule of measured text.
    uint32_t measured(const Rule &rule, const Ast &ast, const Ast::Node &node, uint32_t next);
    /// Whether some state may reach no end. Nearly all are made before one that is known to reach it.
    bool may_dead_end() const { return may_dead_end_; }
    /// One node of a rule's tree.
    uint32_t node(const Rule &rule, const Ast &ast, uint32_t at, uint32_t next);

  private:
    struct KnownCall {
        uint64_t of_call = 0;
        uint32_t state = kNone;

        explicit operator bool() const { return state != kNone; }
        uint64_t hash() const { return of_call; }
    };

    uint32_t continuation(const Ranges &ranges, int bytes, uint32_t next, std::map<std::pair<int, Ranges>, uint32_t> &memo);
    std::vector<ByteEdge> all_wide_chars(uint32_t next);
    const std::vector<ByteEdge> &wide_chars(Ranges ranges, uint32_t next);
    uint32_t repeat(const Rule &rule, const Ast &ast, const Ast::Node &n, uint32_t next);
    uint32_t count(const Rule &rule, const Ast &ast, const Ast::Node &n, uint32_t next);
    uint32_t call(const Rule &rule, const Ast &ast, const Ast::Node &n, uint32_t next);
    uint32_t lone_member(const Rule &rule, const Ast &ast, const Ast::Node &n, uint32_t close);
    uint32_t add_call(Rule *callee, Counter bounds, std::span<const NfaCall::Arm> arms);
    uint32_t unbranched_call(Rule *callee, Counter bounds, uint32_t next);
    uint32_t known_call(Rule *callee, Counter bounds, uint32_t next);
    const Ast &body_of(const Rule &callee);
    uint32_t without(const Rule &rule, const Ast &ast, const Ast::Node &n, uint32_t next);

    Nfa &nfa_;
    // The same class or call before the same state is made once, and a short rule is read once.
    std::map<std::pair<uint32_t, Ranges>, std::vector<ByteEdge>> wide_;
    Table<KnownCall> known_calls_;
    std::unordered_map<const Rule *, Ast> bodies_;
    std::vector<uint32_t> live_;  // scratch of `split`
    const Vocab &vocab_;
    const bool unroll_;
    const uint32_t limit_;  // states
    bool may_dead_end_ = false;
};

}  // namespace dovetail
