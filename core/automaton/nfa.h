// The nondeterministic automaton of one rule: bytes, calls, tokens and counter steps.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/common.h"

namespace dovetail {

struct Ast;
struct Rule;
class Vocab;

struct ByteEdge {
    uint8_t low, high;
    uint32_t to;
};

/// Tokens by id: those in `ids`, or all others that are not stop tokens.
struct TokenSet {
    bool exclude;
    std::vector<uint32_t> ids;  // sorted

    bool has(uint32_t token, const Vocab &vocab) const;
    bool has_any(const Vocab &vocab) const;
};

struct NfaCall {
    struct Arm {
        uint32_t to = kNone;  // kNone: that exit is not allowed
        uint32_t trailing = 0;
    };
    Rule *callee;
    Counter init;
    uint32_t captures = kNone;      // index into names; kNone: none
    uint32_t first = 0, count = 0;  // arms, by exit of the callee
};

struct Nfa {
    enum Kind : uint8_t {
        Range,   // a: target, b: low byte | high byte << 8
        Bytes,   // edges[a, a + b)
        Split,   // outs[a, a + b)
        Enter,   // a: target, b: index into bounds
        Tick,    // a: target; one more repetition
        Leave,   // a: target, b: 1 if the lower bound does not matter
        Short,   // a: target; only while more repetitions are needed
        Full,    // a: target; only when no repetition is left
        Fresh,   // a: target, b: a member that must not have been there
        Mark,    // a: target, b: a member that was there now
        All,     // a: target, b: index into sets; all of them must have been there
        Room,    // a: target, b: index into sets; not all of them may have been there
        NewKey,  // a: target, b: 1 if such keys grow; a key ends that was not there before
        Call,    // a: index into calls
        Token,   // a: index into token_sets, b: target
        Accept,  // a: exit
    };
    struct State {
        Kind kind;
        uint32_t a, b;
    };

    /// Of a measured text.
    struct Measure {
        bool inside = false;   // of the text
        bool between = false;  // its characters
        uint32_t fewest = 0;   // more characters that it needs
    };

    std::vector<State> states;
    std::vector<ByteEdge> edges;
    std::vector<uint32_t> outs;
    std::vector<Counter> bounds;
    std::vector<NfaCall> calls;
    std::vector<NfaCall::Arm> all_arms;
    std::vector<std::vector<std::string>> names;
    std::vector<std::vector<bool>> sets;
    std::vector<TokenSet> token_sets;
    std::vector<bool> counter_live;  // a step but Enter can be reached before the next Enter
    uint32_t start = 0;
    std::vector<Measure> measures;  // by state; none where nothing is measured
    uint32_t room = 0;              // the most characters that a measured text needs from anywhere

    size_t memory() const;
    /// For a rule whose code has that many bytes; and what is not needed any more, because it stays for long.
    void reserve(size_t code);
    void shrink();
    std::span<const NfaCall::Arm> arms(const NfaCall &call) const { return {all_arms.data() + call.first, call.count}; }
    /// Calls `visit(target)` for every successor of a state.
    template <class Visit> void successors(uint32_t state, Visit visit) const {
        const State &s = states[state];
        switch (s.kind) {
        case Range:
        case Enter:
        case Tick:
        case Leave:
        case Short:
        case Full:
        case Fresh:
        case Mark:
        case All:
        case Room:
        case NewKey: visit(s.a); break;
        case Bytes:
            for (uint32_t i = 0; i < s.b; ++i) visit(edges[s.a + i].to);
            break;
        case Split:
            for (uint32_t i = 0; i < s.b; ++i) visit(outs[s.a + i]);
            break;
        case Call:
            for (const NfaCall::Arm &arm : arms(calls[s.a]))
                if (arm.to != kNone) visit(arm.to);
            break;
        case Token: visit(s.b); break;
        case Accept: break;
        }
    }
};

/// Does a state look at the counter or change it, before any byte?
inline bool is_step(Nfa::Kind kind) { return kind >= Nfa::Enter && kind <= Nfa::Room; }

/// Builds the automaton of `rule`; every state of the result can reach an end.
Nfa build_nfa(const Rule &rule, const Vocab &vocab);

/// The tokens that a node names; refuses those that the vocabulary does not have.
TokenSet token_set(const Ast &ast, uint32_t node, const Vocab &vocab);

/// Refuses what the free text that a rule may be cannot be.
void check_text(const Ast &ast);

/// Refuses what the measured text that a rule may be cannot be.
void check_measured(const Ast &ast);

/// Can this node of a rule, which calls nothing, match anything at all?
bool can_match(const Rule &rule, const Ast &ast, uint32_t node, const Vocab &vocab);

inline constexpr uint32_t kMaxNfaStates = 4u << 20;

}  // namespace dovetail
