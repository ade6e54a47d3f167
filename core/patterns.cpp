#include "patterns.h"

#include <algorithm>
#include <tuple>

namespace dovetail {

namespace {

constexpr size_t kMaxTerms = 100'000;
constexpr size_t kMaxLength = 1'000;  // of a word

uint64_t times(uint64_t length, uint64_t count) {
    if (!length || !count) return 0;
    if (length == Lengths::kMany || count == kNone || length > Lengths::kMany / count) return Lengths::kMany;
    return length * count;
}

uint64_t plus(uint64_t left, uint64_t right) { return left > Lengths::kMany - right ? Lengths::kMany : left + right; }

}  // namespace

uint32_t Patterns::intern(Pattern pattern) {
    std::u32string key{static_cast<char32_t>(pattern.kind), pattern.low, pattern.high};
    for (const uint32_t part : pattern.parts) key.push_back(part);
    const auto [found, is_new] = known_.try_emplace(std::move(key), static_cast<uint32_t>(patterns_.size()));
    if (is_new) patterns_.push_back(std::move(pattern));
    return found->second;
}

uint32_t Patterns::rule() {
    patterns_.push_back({Kind::kRule, 0, 0, {}});
    return static_cast<uint32_t>(patterns_.size() - 1);
}

uint32_t Patterns::char_class(Ranges ranges) {
    std::u32string key;
    for (const auto &[low, high] : ranges) key.append({low, high});
    const auto [found, is_new] = known_classes_.try_emplace(std::move(key), static_cast<uint32_t>(classes_.size()));
    if (is_new) classes_.push_back(std::move(ranges));
    return found->second;
}

uint32_t Patterns::chars(Ranges ranges) { return intern({Kind::kChars, char_class(std::move(ranges)), 0, {}}); }

uint32_t Patterns::words(const std::vector<std::u32string> &words) {
    return this->words(words.data(), words.data() + words.size(), 0);
}

/// Words from `begin` on that are alike in their first `depth` characters, without these.
uint32_t Patterns::words(const std::u32string *begin, const std::u32string *end, size_t depth) {
    if (depth > kMaxLength) throw LimitError("a word is longer than 1000 characters");
    Words found{begin != end && begin->size() == depth, {}};
    std::u32string key{found.ended};
    for (const std::u32string *at = begin + found.ended; at != end;) {
        const char32_t first = (*at)[depth];
        const std::u32string *next = std::find_if(at, end, [&](const auto &word) { return word[depth] != first; });
        const uint32_t rest = words(at, next, depth + 1);
        found.forks.push_back({first, char_class({{first, first}}), rest});
        key.append({first, rest});
        at = next;
    }
    const auto [place, is_new] = known_words_.try_emplace(std::move(key), static_cast<uint32_t>(words_.size()));
    if (is_new) words_.push_back(std::move(found));
    return intern({Kind::kWords, place->second, 0, {}});
}

std::vector<std::u32string> Patterns::texts(uint32_t pattern) const {
    std::vector<std::u32string> found;
    std::vector<std::pair<uint32_t, std::u32string>> pending{{pattern, {}}};
    while (!pending.empty()) {
        auto [at, before] = std::move(pending.back());
        pending.pop_back();
        const Words &words = words_of(at);
        for (auto fork = words.forks.rbegin(); fork != words.forks.rend(); ++fork) {
            pending.emplace_back(fork->rest, before);
            pending.back().second.push_back(fork->first);
        }
        if (words.ended) found.push_back(std::move(before));
    }
    return found;
}

Terms::Terms(Patterns &patterns)
    : patterns_(patterns), alphabet_(patterns.classes()), every_(Symbols::first(alphabet_.symbols.size())) {
    known_[kEnd].made = true;
    find_nullable();
}

/// From the smallest patterns upwards, through rules that may call each other in a circle.
void Terms::find_nullable() {
    using Kind = Patterns::Kind;
    const size_t count = patterns_.size();
    nullable_.resize(count);
    std::vector<std::vector<uint32_t>> users(count);
    std::vector<size_t> missing(count);
    std::vector<uint32_t> pending;
    for (uint32_t at = 0; at < count; ++at) {
        const Patterns::Pattern &pattern = patterns_[at];
        missing[at] = pattern.kind == Kind::kCat ? pattern.parts.size() : 1;
        for (const uint32_t part : pattern.parts) users[part].push_back(at);
        const bool counted = pattern.kind == Kind::kRepeat && !pattern.low;
        if (counted || !missing[at] || (pattern.kind == Kind::kWords && patterns_.words_of(at).ended)) {
            nullable_[at] = true;
            pending.push_back(at);
        }
    }
    while (!pending.empty()) {
        const uint32_t at = pending.back();
        pending.pop_back();
        for (const uint32_t user : users[at]) {
            if (nullable_[user] || --missing[user]) continue;
            nullable_[user] = true;
            pending.push_back(user);
        }
    }
}

uint32_t Terms::term(uint32_t pattern, uint32_t rest) {
    const uint64_t key = uint64_t{pattern} << 32 | rest;
    const auto [found, is_new] = numbers_.try_emplace(key, static_cast<uint32_t>(terms_.size()));
    if (is_new) {
        if (terms_.size() > kMaxTerms) throw LimitError("the pattern takes too long to combine");
        // What is left of a repetition came after all others were looked at.
        for (size_t at = nullable_.size(); at < patterns_.size(); ++at) {
            const Patterns::Pattern &made = patterns_[static_cast<uint32_t>(at)];
            nullable_.push_back(!made.low || nullable_[made.parts[0]]);
        }
        terms_.push_back({pattern, rest, nullable_[pattern] && terms_[rest].nullable});
        known_.emplace_back();
        seen_.push_back(0);
    }
    return found->second;
}

const Terms::Known &Terms::known(uint32_t term) {
    if (!known_[term].made) {
        Known made;
        linear(term, made.moves);
        made.made = true;
        for (const Move &move : made.moves)
            if (move.target == term && terms_[term].nullable && move.symbols == every_) made.universal = true;
        known_[term] = std::move(made);
    }
    return known_[term];
}

void Terms::linear(uint32_t term, std::vector<Move> &moves) {
    ++turn_;
    std::vector<uint32_t> reached{term};
    for (size_t at = 0; at < reached.size(); ++at) {
        const uint32_t current = reached[at];
        if (current == kEnd || seen_[current] == turn_) continue;
        seen_[current] = turn_;
        unfold(terms_[current].pattern, terms_[current].rest, moves, reached);
    }
}

/// The terms that stand for a pattern and `rest` before the next character, which goes to `moves`.
void Terms::unfold(uint32_t pattern, uint32_t rest, std::vector<Move> &moves, std::vector<uint32_t> &reached) {
    using Kind = Patterns::Kind;
    const auto move = [&](uint32_t char_class, uint32_t target) {
        const Symbols &symbols = alphabet_.classes[char_class];
        for (Move &known : moves)
            if (known.target == target) {
                known.symbols |= symbols;
                return;
            }
        moves.push_back({symbols, target});
    };
    switch (patterns_[pattern].kind) {
        case Kind::kChars:
            move(patterns_[pattern].low, rest);
            break;
        case Kind::kCat:
            for (size_t at = patterns_[pattern].parts.size(); at-- > 0;) rest = term(patterns_[pattern].parts[at], rest);
            reached.push_back(rest);
            break;
        case Kind::kOr:
            for (const uint32_t part : patterns_[pattern].parts) reached.push_back(term(part, rest));
            break;
        case Kind::kRule:
            reached.push_back(term(patterns_[pattern].parts[0], rest));
            break;
        case Kind::kRepeat:
            unfold_repeat(pattern, rest, reached);
            break;
        case Kind::kWords:
            for (const Patterns::Fork &fork : patterns_.words_of(pattern).forks)
                move(fork.char_class, term(fork.rest, rest));
            if (patterns_.words_of(pattern).ended) reached.push_back(rest);
            break;
    }
}

void Terms::unfold_repeat(uint32_t pattern, uint32_t rest, std::vector<uint32_t> &reached) {
    const auto [low, high, body] = std::tuple(patterns_[pattern].low, patterns_[pattern].high, patterns_[pattern].parts[0]);
    const bool empty = nullable_[body];
    if (!low || empty) reached.push_back(rest);
    if (!high) return;
    // Nothing is put behind the last time, so that a call at its end stays one.
    uint32_t again = rest;
    if (high != 1) {
        const uint32_t fewer = empty || !low ? 0 : low - 1;
        const uint32_t left = high == kNone && !low ? pattern : patterns_.repeat(body, fewer, high == kNone ? high : high - 1);
        again = term(left, rest);
        if (empty) seen_[again] = turn_;  // without a character it adds nothing
    }
    reached.push_back(term(body, again));
}

Lengths Terms::lengths(uint32_t term) {
    std::vector<uint32_t> chain;
    uint32_t at = term;
    for (; at != kEnd && !lengths_.contains(at); at = terms_[at].rest) chain.push_back(at);
    Lengths found = at == kEnd ? Lengths{} : lengths_[at];
    while (!chain.empty()) {
        const Lengths own = lengths_of(terms_[chain.back()].pattern);
        found = {plus(own.fewest, found.fewest), plus(own.most, found.most)};
        lengths_[chain.back()] = found;
        chain.pop_back();
    }
    return found;
}

/// The fewest and most characters of a pattern, or bounds of them where rules call each other in a circle.
Lengths Terms::lengths_of(uint32_t pattern) {
    std::vector<uint32_t> pending{pattern};
    while (!pending.empty()) {
        const uint32_t at = pending.back();
        const size_t before = pending.size();
        // What is met again inside of itself counts as any number of characters.
        if (own_lengths_.try_emplace(at, Lengths{0, Lengths::kMany}).second)
            for (const uint32_t part : patterns_[at].parts)
                if (!own_lengths_.contains(part)) pending.push_back(part);
        if (pending.size() > before) continue;
        own_lengths_[at] = joined_lengths(at);
        pending.pop_back();
    }
    return own_lengths_[pattern];
}

Lengths Terms::joined_lengths(uint32_t pattern) const {
    using Kind = Patterns::Kind;
    const Patterns::Pattern &found = patterns_[pattern];
    Lengths total;
    switch (found.kind) {
        case Kind::kChars:
            return {1, 1};
        case Kind::kWords:
            return {0, Lengths::kMany};
        case Kind::kRepeat: {
            const Lengths body = own_lengths_.at(found.parts[0]);
            return {times(body.fewest, found.low), times(body.most, found.high)};
        }
        case Kind::kOr:
            if (!found.parts.empty()) total.fewest = Lengths::kMany;
            for (const uint32_t part : found.parts) {
                const Lengths one = own_lengths_.at(part);
                total = {std::min(total.fewest, one.fewest), std::max(total.most, one.most)};
            }
            return total;
        case Kind::kCat:
        case Kind::kRule:
            for (const uint32_t part : found.parts) {
                const Lengths one = own_lengths_.at(part);
                total = {plus(total.fewest, one.fewest), plus(total.most, one.most)};
            }
    }
    return total;
}

}  // namespace dovetail
