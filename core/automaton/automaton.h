// The automaton of one rule, made deterministic while it is walked.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/heap.h"
#include "automaton/nfa.h"
#include "grammar/rule.h"
#include "base/table.h"
#include "vocabulary/vocab.h"

namespace dovetail {

class Automaton;
class Store;
struct DState;
struct MaskNode;
struct MaskRoots;

/// A call that a state can make, with where it goes on by the exit that the callee takes.
struct CallSite {
    struct Return {
        DState *state = nullptr;
        uint32_t trailing = 0;
    };
    uint64_t id;
    Automaton *callee;
    Counter init;
    bool keeps_set;                      // the caller does
    bool measured;                       // the caller is, see DState
    bool tail;                           // nothing is left to do after the call: the frame need not be kept
    uint32_t room;                       // of the caller
    std::span<const Return> returns;     // by exit
    std::span<const uint32_t> captures;  // names

    DState *entry() const;
};

struct TokenEdge {
    const TokenSet *set;
    DState *to;
};

/// What the counter steps of a state come to: where they lead, and with which counter.
struct Resolved {
    enum How : uint8_t { Zero, Keep, Tick, TickLeft, Set };
    DState *state;
    How how;
    Counter value;  // for Set

    Counter apply(Counter c) const;
};

/// A state that takes exactly what a state of another rule takes after the calls at `sites`, outermost first; or none.
struct Counterpart {
    DState *state = nullptr;
    std::vector<const CallSite *> sites;
    int tries = 0;

    /// Other bytes may have led here where the callee would be somewhere else, so a few are tried.
    bool may_try() const { return !state && tries < 4; }
};

struct DState {
    struct Range {
        uint8_t low, high;
        DState *to;
    };
    struct Extra {
        std::vector<uint32_t> exits;
        std::span<CallSite> calls;
        std::vector<TokenEdge> tokens;
        DState *behind_key = nullptr;  // where it goes on if the key that ends here is new
        bool key_grows = true;
        using ByCounterClass = std::array<std::unique_ptr<std::vector<Resolved>>, 9>;
        std::unique_ptr<ByCounterClass> resolved;  // most states have no counter steps
        std::unique_ptr<std::unordered_map<uint32_t, std::vector<Resolved>>> by_set;
        std::vector<std::unique_ptr<std::pair<const DState *, CharSet>>> chars_to;  // see Automaton::chars_to
        std::unique_ptr<Counterpart> counterpart;
    };
    struct Dense {
        uint8_t index[256];
        std::vector<DState *> to;  // to[0] is null

        void put(uint8_t low, uint8_t high, DState *state);
    };

    Automaton *owner = nullptr;
    const uint32_t *set = nullptr;  // NFA states, sorted
    uint32_t set_size = 0;
    bool expanded = false;
    bool entry = false;      // just called: the callee may not match nothing, callers skip it themselves
    bool has_steps = false;  // counter steps come first, see Automaton::resolve
    bool has_bytes = false;
    bool byte_only = false;  // nothing but bytes: no exit, call, token or counter step
    bool counter_live = false;
    bool counts_tokens = false;  // of free text with a token budget
    bool keeps_set = false;      // of members in any order
    bool measured = false;       // of measured text: `left` of the counter is one more than the characters that may come
    bool between = false;        // its characters
    uint16_t ranges = 0;
    uint32_t place = 0;            // among the states of its owner
    uint32_t fewest = 0;           // more characters that measured text needs
    const Range *row = nullptr;    // sorted
    const Dense *dense = nullptr;  // for bytes that are in no range
    Owned<Extra> extra;
    Owned<MaskRoots> masks;
    MaskNode *uncounted_mask = nullptr;  // the one in `masks` for counter zero

    DState();
    ~DState();

    /// Never given again within a store, and never the one of a call site.
    uint64_t id() const;
    bool keeps_counter() const { return counter_live || measured; }
    /// Counts the character that begins on the way to another state; false where there are too few or too many of them
    /// for the text to end. A counter of zero says that nothing is measured.
    bool measure(const DState &to, Counter &c) const;

    DState *next(uint8_t b) const {
        for (const Range *r = row, *end = r + ranges; r != end; ++r) {
            if (b > r->high) continue;
            if (b >= r->low) return r->to;
            break;
        }
        return dense ? dense->to[dense->index[b]] : nullptr;
    }
    template <class Visit> void each_range(Visit visit) const;
    /// Calls `visit(to)` for all states that some byte may lead to.
    template <class Visit> void each_target(Visit visit) const {
        std::for_each(row, row + ranges, [&](const Range &r) { visit(r.to); });
        if (dense) std::for_each(dense->to.begin(), dense->to.end(), visit);
    }
    /// The characters of ASCII that it takes.
    CharSet ascii() const;
    /// Where the bytes lead by states that do nothing but take them; null where they do not.
    DState *follow(std::string_view bytes);
};

/// What automata of one store need while they make a state. Most automata are small, so it is none of theirs.
struct Workspace {
    struct Return {
        uint32_t site, exit, to;
        auto operator<=>(const Return &) const = default;
    };
    /// A way through counter steps.
    struct Thread {
        uint32_t state;
        Resolved way;
        bool ticked;
    };

    std::vector<uint64_t> visited, resolved;  // by NFA state: the last closure, or round of resolving, that came there
    uint64_t closures = 0, rounds = 0;
    std::vector<uint32_t> pending, closure;
    std::vector<ByteEdge> edges, active;
    std::vector<DState::Range> row;
    std::vector<uint16_t> cuts;
    std::vector<uint32_t> calls, behind_key, targets, last_targets;
    std::vector<std::pair<const NfaCall *, size_t>> sites;  // with the number of exits
    std::vector<Return> returns;
    std::vector<CallSite::Return> back;
    std::vector<Thread> threads, seen;
    std::vector<std::pair<uint32_t, uint32_t>> grouped;  // states behind counter steps, by way
    Chunks chunks;
};

class Automaton {
  public:
    Automaton(Rule &rule, Store &store);
    ~Automaton();

    uint64_t id() const { return id_; }
    /// For what its states need.
    Heap &heap() { return heap_; }
    /// Where a call begins, and where a whole output begins (which may be empty).
    DState *entry();
    DState *start();
    /// Computes the rows of a state when it is first needed.
    void expand(DState &d) {
        if (!d.expanded) expand_now(d);
    }
    const std::vector<Resolved> &resolve(DState &d, Counter c);
    /// The only call of a state that does nothing else; or null.
    const CallSite *lone_call(DState &d);
    /// The characters that lead from a state to another or to itself; null says that they lead nowhere.
    const CharSet &chars_to(DState &d, const DState *to);
    /// For states inside a character that a call follows; the bytes lead to the state in some walk.
    const Counterpart &counterpart(DState &d, std::string_view bytes);
    /// A state with a large mask that loops on itself: other walks come to its suffixes and need not go on.
    DState *loop_state() const { return loop_state_; }
    /// Of measured text: the most characters that it needs from anywhere.
    uint32_t room() const { return nfa_.room; }
    void offer_loop_state(DState &d);

  private:
    /// A state by its set.
    struct Known {
        DState *state = nullptr;
        uint64_t of = 0;

        explicit operator bool() const { return state; }
        uint64_t hash() const { return of; }
    };
    /// Sets of members in any order that were there; the first is empty.
    struct MemberSets {
        std::vector<std::vector<bool>> sets{{}};
        std::unordered_map<std::vector<bool>, uint32_t> numbers;
    };

    DState *intern(std::vector<uint32_t> &set, bool entry);
    uint32_t with_member(uint32_t set, uint32_t member);
    void close(uint32_t state, std::vector<uint32_t> &out);
    DState *closed(uint32_t target);
    DState *closed(const std::vector<uint32_t> &targets);
    void take_measures(DState &d);
    void expand_now(DState &d);
    void expand_row(DState &d, std::vector<ByteEdge> &edges);
    void store_row(DState &d, const std::vector<DState::Range> &ranges);
    void expand_calls(DState &d);
    void make_room_for_sites(DState &d, size_t count);
    void add_site(DState &d, const NfaCall &call, std::span<const CallSite::Return> returns);
    DState &add_state();
    void own_row(DState &d, std::unique_ptr<DState::Dense> row);
    void set_row(DState &d, std::span<const DState::Range> row);
    std::vector<Resolved> resolve_now(DState &d, Counter c);
    void follow_steps(const DState &d, Counter c, std::vector<Resolved> &ways);
    DState::Extra &extra(DState &d);
    bool takes_the_same(DState &d, DState &other, const CallSite &site, DState &entered, int depth);
    void account(size_t bytes);

    Rule &rule_;
    Store &store_;
    Workspace &work_;
    uint64_t id_;
    Nfa nfa_;
    Heap heap_;
    std::vector<DState *> states_;
    Table<Known> interned_;
    std::vector<uint32_t> by_target_;  // what moving to an NFA state comes to, as the place of a state
    std::vector<std::unique_ptr<DState::Dense>> rows_;
    std::unique_ptr<MemberSets> members_;
    DState *start_ = nullptr, *entry_ = nullptr, *loop_state_ = nullptr;
    size_t bytes_ = 0;
};

inline constexpr uint32_t kMaxStates = 1u << 18;  // deterministic states of one rule

inline uint64_t DState::id() const { return uint64_t{1} << 63 | owner->id() * kMaxStates | place; }

inline DState *CallSite::entry() const { return callee->entry(); }

template <class Visit> void DState::each_range(Visit visit) const {
    if (!dense) {
        for (uint16_t i = 0; i < ranges; ++i) visit(row[i].low, row[i].high, row[i].to);
        return;
    }
    for (int b = 0; b < 256; ++b)
        if (DState *to = next(static_cast<uint8_t>(b))) visit(static_cast<uint8_t>(b), static_cast<uint8_t>(b), to);
}

inline bool DState::measure(const DState &to, Counter &c) const {
    if (c.left == 0) return true;
    if (!to.measured) return c.need == 0;
    if (between) {
        if (c.left == 1) return false;
        if (c.left != kUnbounded) --c.left;
        if (c.need > 0) --c.need;
        if (c == Counter{kUnbounded, 0}) c = {};
    }
    return c.left == 0 || c.left > to.fewest;
}

inline CharSet DState::ascii() const {
    CharSet chars;
    each_range([&](uint8_t low, uint8_t high, const DState *) {
        for (int b = low; b <= high && b < 128; ++b) chars.add(static_cast<uint8_t>(b));
    });
    return chars;
}

}  // namespace dovetail
