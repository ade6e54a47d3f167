// What is left of patterns after some characters, by partial derivatives (Antimirov 1996).
#pragma once

#include <deque>
#include <string>
#include <unordered_map>

#include "common.h"
#include "symbols.h"

namespace dovetail {

/// Patterns without assertions, the same ones once. What each is made of is there before it, but for the bodies of rules.
class Patterns {
  public:
    enum class Kind : uint8_t { kChars, kCat, kOr, kRepeat, kRule, kWords };
    struct Pattern {
        Kind kind;
        uint32_t low = 0, high = 0;  // of a repetition; of characters their class; of words the place in their tree
        std::vector<uint32_t> parts;
    };

    uint32_t chars(Ranges ranges);
    uint32_t cat(std::vector<uint32_t> parts) { return intern({Kind::kCat, 0, 0, std::move(parts)}); }
    uint32_t any(std::vector<uint32_t> parts) { return intern({Kind::kOr, 0, 0, std::move(parts)}); }
    uint32_t repeat(uint32_t body, uint32_t low, uint32_t high) { return intern({Kind::kRepeat, low, high, {body}}); }
    /// A rule has no body at first.
    uint32_t rule();
    void set_body(uint32_t rule, uint32_t body) { patterns_[rule].parts = {body}; }
    /// Any one of these texts, which are sorted and different.
    uint32_t words(const std::vector<std::u32string> &words);

    const Pattern &operator[](uint32_t at) const { return patterns_[at]; }
    size_t size() const { return patterns_.size(); }
    const std::vector<Ranges> &classes() const { return classes_; }

    /// What follows each first character of some words.
    struct Fork {
        char32_t first;
        uint32_t char_class;
        uint32_t rest;  // words
    };
    struct Words {
        bool ended;  // one of them is empty
        std::vector<Fork> forks;
    };
    const Words &words_of(uint32_t pattern) const { return words_[patterns_[pattern].low]; }
    /// The texts of a pattern of words.
    std::vector<std::u32string> texts(uint32_t pattern) const;

  private:
    uint32_t intern(Pattern pattern);
    uint32_t char_class(Ranges ranges);
    uint32_t words(const std::u32string *begin, const std::u32string *end, size_t depth);

    std::vector<Pattern> patterns_;
    std::unordered_map<std::u32string, uint32_t> known_;
    std::vector<Ranges> classes_;
    std::unordered_map<std::u32string, uint32_t> known_classes_;
    std::vector<Words> words_;
    std::unordered_map<std::u32string, uint32_t> known_words_;
};

/// How many characters a text has.
struct Lengths {
    uint64_t fewest = 0, most = 0;
    static constexpr uint64_t kMany = UINT64_MAX;  // without bound, or beyond all counting
};

/// A term is a pattern and the term that follows it. They are made when they are first reached, so that large counts
/// cost nothing until they are walked. The first one is the end of a text.
class Terms {
  public:
    static constexpr uint32_t kEnd = 0;
    struct Term {
        uint32_t pattern = 0, rest = 0;
        bool nullable = true;  // the text may end here
    };
    struct Move {
        Symbols symbols;
        uint32_t target;
    };

    explicit Terms(Patterns &patterns);

    const Alphabet &alphabet() const { return alphabet_; }
    const Symbols &every() const { return every_; }
    const Term &operator[](uint32_t at) const { return terms_[at]; }
    uint32_t term(uint32_t pattern, uint32_t rest = kEnd);
    /// Where each character leads.
    const std::vector<Move> &moves(uint32_t term) { return known(term).moves; }
    /// Whether any text may follow; false also where that is not obvious.
    bool is_universal(uint32_t term) { return known(term).universal; }
    bool is_words(uint32_t term) const { return patterns_[terms_[term].pattern].kind == Patterns::Kind::kWords; }
    Lengths lengths(uint32_t term);

  private:
    struct Known {
        std::vector<Move> moves;
        bool universal = false, made = false;
    };

    const Known &known(uint32_t term);
    void linear(uint32_t term, std::vector<Move> &moves);
    void unfold(uint32_t pattern, uint32_t rest, std::vector<Move> &moves, std::vector<uint32_t> &reached);
    void unfold_repeat(uint32_t pattern, uint32_t rest, std::vector<uint32_t> &reached);
    void find_nullable();
    Lengths lengths_of(uint32_t pattern);
    Lengths joined_lengths(uint32_t pattern) const;

    Patterns &patterns_;
    Alphabet alphabet_;
    Symbols every_;
    std::vector<Term> terms_{1};
    std::deque<Known> known_{1};  // which stay where they are
    std::unordered_map<uint64_t, uint32_t> numbers_;
    std::vector<bool> nullable_;     // patterns
    std::vector<uint32_t> seen_{0};  // terms, by when they were last looked at
    uint32_t turn_ = 0;
    std::unordered_map<uint32_t, Lengths> lengths_;      // terms
    std::unordered_map<uint32_t, Lengths> own_lengths_;  // patterns
};

}  // namespace dovetail
