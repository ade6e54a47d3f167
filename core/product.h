// What several patterns say together: all of some, none of others, and a number of characters.
#pragma once

#include "patterns.h"

namespace dovetail {

/// State 0 is the start. At an exit the rest of the text matches one of the patterns given there.
struct Together {
    struct Edge {
        uint32_t target;
        Symbols symbols;
    };
    struct State {
        std::vector<Edge> edges;
        std::vector<uint32_t> exits;  // as Exits numbers them
        bool accepting = false;
    };
    std::vector<State> states;
};

/// Where one pattern alone has a say, a state is left for the pattern itself, so that its counts stay counts.
class Exits {
  public:
    static constexpr uint32_t kStuck = kNone, kNothing = kNone - 1;
    virtual ~Exits() = default;
    /// The texts of a term of low to high characters; kStuck where its pattern cannot take up the limits, kNothing
    /// where there are none.
    virtual uint32_t rest(uint32_t term, uint32_t low, uint32_t high) = 0;
    virtual uint32_t anything(uint32_t low, uint32_t high) = 0;
    /// Any text but those of a pattern of words.
    virtual uint32_t other_than(uint32_t words) = 0;
};

/// The automaton of the texts that all of `wanted` and none of `barred` match, of low to high characters.
/// It is deterministic, unless `split`: then each thread of the first pattern is a state of its own.
class Product {
  public:
    Product(Terms &terms, const std::vector<uint32_t> &wanted, const std::vector<uint32_t> &barred, bool split,
            Exits *exits);
    /// All states that the start reaches, `most` of them.
    Together run(uint32_t low, uint32_t high, size_t most);

  private:
    /// The threads of each pattern, and how many characters may still come.
    struct State {
        std::vector<uint32_t> threads;  // sets; the wanted ones come first
        uint32_t low, high;
    };
    struct Cell {
        Symbols symbols;
        uint32_t threads;
    };
    using Set = std::u32string;  // of terms

    // Of a pattern that is wanted: it is matched whatever follows. Of a barred one: it cannot match any more.
    static constexpr uint32_t kSettled = 0;

    uint32_t number(const State &state);
    uint32_t intern(Set set);
    uint32_t settled(Set set) { return is_universal(set) ? kSettled : intern(std::move(set)); }
    bool is_universal(const Set &set);
    bool is_nullable(uint32_t threads) const;
    bool may_end(const State &state) const;
    bool leave(State &state, std::vector<uint32_t> &exits);
    bool leave_words(const State &state, std::vector<uint32_t> &exits);
    void follow(const State &state, std::vector<Together::Edge> &edges);
    bool fits(const State &state);
    const std::vector<Cell> &table(uint32_t threads, bool barred, bool split);
    std::vector<Cell> moves(uint32_t threads, bool barred);
    std::vector<Cell> split_moves(uint32_t threads);

    Terms &terms_;
    size_t wanted_;
    bool split_;
    Exits *exits_;
    std::vector<uint32_t> start_;
    bool empty_ = false;  // a barred pattern matches all
    std::vector<Set> sets_{1};
    std::unordered_map<Set, uint32_t> set_numbers_{{Set(), kSettled}};
    std::unordered_map<uint64_t, std::vector<Cell>> tables_;
    std::vector<State> states_;
    std::unordered_map<std::u32string, uint32_t> state_numbers_;
    std::vector<bool> stuck_;  // terms
    size_t work_ = 0;
};

}  // namespace dovetail
