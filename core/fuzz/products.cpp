#include "products.h"

#include "product.h"

namespace dovetail {

namespace {

constexpr char32_t kLetters[] = {'a', 'b', 'c', 0xE9, 0x1F642};
constexpr uint32_t kLongest = 6;

using Places = uint32_t;  // in a word, as bits

std::u32string random_word(Random &random, uint32_t longest) {
    std::u32string word;
    for (uint32_t n = random.below(longest + 1); n > 0; --n) word.push_back(kLetters[random.below(5)]);
    return word;
}

class Drawing {
  public:
    Drawing(Random &random, Patterns &patterns) : random_(random), patterns_(patterns) {
        for (uint32_t n = random.below(3); n > 0; --n) rules_.push_back(patterns.rule());
        // A rule calls others at its end only, behind a character.
        for (const uint32_t rule : rules_) {
            std::vector<uint32_t> ways{draw(2)};
            for (uint32_t n = random.below(3); n > 0; --n)
                ways.push_back(patterns.cat({chars(), rules_[random.below(static_cast<uint32_t>(rules_.size()))]}));
            patterns.set_body(rule, patterns.any(std::move(ways)));
        }
        calls_ = !rules_.empty();
    }

    uint32_t draw(uint32_t depth) {
        switch (depth ? random_.below(7) : 0) {
            case 1:
                return patterns_.cat(parts(depth));
            case 2:
                return patterns_.any(parts(depth));
            case 3:
            case 4: {
                const uint32_t low = random_.below(3), high = random_.one_in(2) ? kNone : low + random_.below(3);
                return patterns_.repeat(draw(depth - 1), low, random_.one_in(20) ? 1u << 30 : high);
            }
            case 5:
                if (calls_) return patterns_.cat({draw(depth - 1), rules_[0]});
                [[fallthrough]];
            default:
                return chars();
        }
    }

    uint32_t words() {
        std::vector<std::u32string> found;
        for (uint32_t n = 1 + random_.below(4); n > 0; --n) found.push_back(random_word(random_, 3));
        std::sort(found.begin(), found.end());
        found.erase(std::unique(found.begin(), found.end()), found.end());
        return patterns_.words(found);
    }

  private:
    uint32_t chars() {
        static constexpr uint32_t kEnds[] = {0, 'a', 'b', 'c', 0xE9, 0xD800, 0xDFFF, 0x1F642, 0x10FFFF};
        Ranges ranges;
        uint32_t at = 0;
        while (at < 9 && !random_.one_in(4)) {
            at += random_.below(3);
            const uint32_t end = at + random_.below(2);
            if (end < 9) ranges.emplace_back(kEnds[at], kEnds[end]);
            at = end + 1;
        }
        return patterns_.chars(std::move(ranges));
    }

    std::vector<uint32_t> parts(uint32_t depth) {
        std::vector<uint32_t> found;
        for (uint32_t n = random_.below(4); n > 0; --n) found.push_back(draw(depth - 1));
        return found;
    }

    Random &random_;
    Patterns &patterns_;
    std::vector<uint32_t> rules_;
    bool calls_ = false;
};

/// Where the texts of a pattern end that begin at these places; tried out, not derived.
Places ends(const Patterns &patterns, uint32_t pattern, const std::u32string &word, Places from) {
    using Kind = Patterns::Kind;
    const Patterns::Pattern &one = patterns[pattern];
    Places found = 0;
    if (!from) return 0;
    switch (one.kind) {
        case Kind::kChars:
            for (size_t at = 0; at < word.size(); ++at)
                for (const auto &[low, high] : patterns.classes()[one.low])
                    if (from >> at & 1 && word[at] >= low && word[at] <= high) found |= 2u << at;
            return found;
        case Kind::kCat:
            for (const uint32_t part : one.parts) from = ends(patterns, part, word, from);
            return from;
        case Kind::kOr:
        case Kind::kRule:
            for (const uint32_t part : one.parts) found |= ends(patterns, part, word, from);
            return found;
        case Kind::kWords:
            for (const std::u32string &text : patterns.texts(pattern))
                for (size_t at = 0; at <= word.size(); ++at)
                    if (from >> at & 1 && !word.compare(at, text.size(), text) && at + text.size() <= word.size())
                        found |= 1u << (at + text.size());
            return found;
        case Kind::kRepeat:
            break;
    }
    // More times than this lead nowhere new.
    const uint32_t enough = std::min(one.high, one.low + kLongest + 1);
    for (uint32_t times = 0; times <= enough && from; ++times) {
        if (times >= one.low) found |= from;
        from = ends(patterns, one.parts[0], word, from);
    }
    return found;
}

bool matches(const Patterns &patterns, uint32_t pattern, const std::u32string &word) {
    return ends(patterns, pattern, word, 1) >> word.size() & 1;
}

/// Exits as they come, of which some terms are stuck.
class Taken : public Exits {
  public:
    Taken(const Patterns &patterns, const Terms &terms) : patterns_(patterns), terms_(terms) {}

    uint32_t rest(uint32_t term, uint32_t low, uint32_t high) override {
        return (low || high != kNone) && term % 2 ? kStuck : add({term, low, high, false});
    }
    uint32_t anything(uint32_t low, uint32_t high) override { return add({kNone, low, high, false}); }
    uint32_t other_than(uint32_t words) override { return add({words, 0, kNone, true}); }

    bool takes(uint32_t exit, const std::u32string &word) const {
        const One &one = exits_[exit];
        if (word.size() < one.low || word.size() > one.high) return false;
        if (one.barred) return !matches(patterns_, one.what, word);
        if (one.what == kNone) return true;
        Places from = 1;
        for (uint32_t term = one.what; term != Terms::kEnd; term = terms_[term].rest)
            from = ends(patterns_, terms_[term].pattern, word, from);
        return from >> word.size() & 1;
    }

  private:
    struct One {
        uint32_t what, low, high;
        bool barred;
    };
    uint32_t add(One one) {
        exits_.push_back(one);
        return static_cast<uint32_t>(exits_.size() - 1);
    }

    const Patterns &patterns_;
    const Terms &terms_;
    std::vector<One> exits_;
};

bool takes(const Together &together, const Alphabet &alphabet, const Taken &exits, const std::u32string &word) {
    std::vector<uint32_t> states{0};
    for (size_t at = 0; at <= word.size(); ++at) {
        std::vector<bool> next(together.states.size());
        Symbols symbol;
        for (size_t one = 0; at < word.size() && one < alphabet.symbols.size(); ++one)
            for (const auto &[low, high] : alphabet.symbols[one])
                if (word[at] >= low && word[at] <= high) symbol.add(one);
        for (const uint32_t state : states) {
            const Together::State &here = together.states[state];
            if (at == word.size() && here.accepting) return true;
            for (const uint32_t exit : here.exits)
                if (exits.takes(exit, word.substr(at))) return true;
            for (const Together::Edge &edge : here.edges)
                if (!(edge.symbols & symbol).empty()) next[edge.target] = true;
        }
        states.clear();
        for (uint32_t state = 0; state < next.size(); ++state)
            if (next[state]) states.push_back(state);
    }
    return false;
}

}  // namespace

bool products_hold(Random &random) {
    Patterns patterns;
    Drawing drawing(random, patterns);
    std::vector<uint32_t> wanted, barred;
    for (uint32_t n = 1 + random.below(2); n > 0; --n) wanted.push_back(drawing.draw(3));
    for (uint32_t n = random.below(3); n > 0; --n) barred.push_back(random.one_in(2) ? drawing.words() : drawing.draw(3));
    const uint32_t low = random.one_in(2) ? 0 : random.below(4), high = random.one_in(2) ? kNone : low + random.below(4);
    Terms terms(patterns);
    Taken exits(patterns, terms);
    Product product(terms, wanted, barred, random.one_in(2), random.one_in(3) ? nullptr : &exits);
    const Together together = product.run(low, high, 2'000);
    for (int tries = 0; tries < 40; ++tries) {
        const std::u32string word = random_word(random, kLongest);
        bool expected = word.size() >= low && word.size() <= high;
        for (const uint32_t one : wanted) expected = expected && matches(patterns, one, word);
        for (const uint32_t one : barred) expected = expected && !matches(patterns, one, word);
        if (takes(together, terms.alphabet(), exits, word) != expected) return false;
    }
    return true;
}

}  // namespace dovetail
