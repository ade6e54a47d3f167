// What a matcher does about the keys that an object has already: none of them may end again, and where those that may
// still come are few, none may begin that could only end as one of them.
#include <algorithm>
#include <array>
#include <optional>

#include "matcher/key_tokens.h"
#include "matcher/matcher.h"

namespace dovetail {

namespace {

constexpr int kMaxTried = 1024;    // bytes that are tried to find a key that is not there
constexpr int kMaxLeaving = 4;     // ways that leave all keys that are there
constexpr int kMaxFollowed = 100;  // bytes on one of these

bool has(const uint32_t *mask, uint32_t token) { return mask[token / 32] >> (token % 32) & 1; }
void clear(uint32_t *mask, uint32_t token) { mask[token / 32] &= ~(1u << (token % 32)); }

bool takes_tokens(const Stacks &stacks) {
    return std::any_of(stacks.tops.begin(), stacks.tops.end(), [](const Config &c) { return c.d->extra && !c.d->extra->tokens.empty(); });
}

std::array<bool, 256> next_bytes(const Stacks &stacks) {
    std::array<bool, 256> bytes{};
    for (const Config &c : stacks.tops)
        c.d->each_range([&](uint8_t low, uint8_t high, const DState *) { std::fill(bytes.begin() + low, bytes.begin() + high + 1, true); });
    return bytes;
}

}  // namespace

/// Gives back the frames and marks that are made in its time; while `replaying`, no key is asked about.
class Matcher::Scratch {
  public:
    Scratch(Matcher &matcher, bool replaying)
        : matcher_(matcher), frames_(matcher.frames_->used()), marks_(matcher.marks_->used()), before_(matcher.replaying_) {
        matcher.replaying_ = matcher.replaying_ || replaying;
    }
    ~Scratch() {
        matcher_.frames_->rewind(frames_);
        matcher_.marks_->rewind(marks_);
        matcher_.replaying_ = before_;
    }
    Scratch(const Scratch &) = delete;

  private:
    Matcher &matcher_;
    size_t frames_, marks_;
    bool before_;
};

// Masks.

void Matcher::drop_known_keys(uint32_t *mask) {
    const KeyTokens &tokens = store_.key_tokens();
    const Vocab &vocab = store_.vocab();
    if (keys_->on() && keys_->where() == ObjectKeys::kInKey && keys_->has_keys()) {
        for (const uint32_t node : tokens.closing(keys_->escaped())) {
            KeyHash key = keys_->key();
            const std::string_view path = vocab.path(node);
            for (const char c : path.substr(0, path.size() - 1)) key.feed(static_cast<uint8_t>(c));
            if (keys_->may_have(key)) drop_below(node, mask);
        }
    }
    const auto may_repeat = [&](std::string_view bytes) {
        const Undone reading(keys_.get());
        return std::any_of(bytes.begin(), bytes.end(), [&](char c) {
            keys_->read(static_cast<uint8_t>(c));
            return keys_->on() && keys_->where() == ObjectKeys::kBehindKey && keys_->may_have(keys_->key());
        });
    };
    if (keys_->on())
        for (const uint32_t token : tokens.whole(keys_->where()))
            if (has(mask, token) && may_repeat(vocab.bytes(token)) && !allows(token)) clear(mask, token);
    // The reader alone does not see which strings of a token are keys.
    for (const uint32_t token : tokens.pairs())
        if (has(mask, token) && !allows(token)) clear(mask, token);
    if (grammar_->bounds_keys) drop_doubtful(mask);
}

/// Clears the tokens that end where all keys that could go on are there, looking where that is in doubt.
void Matcher::drop_doubtful(uint32_t *mask) {
    const Vocab &vocab = store_.vocab();
    const auto may_be_stuck = [&](std::string_view bytes) {
        const Undone reading(keys_.get());
        for (const char c : bytes) keys_->read(static_cast<uint8_t>(c));
        return keys_->may_be_stuck();
    };
    for (const uint32_t token : store_.key_tokens().begun_pairs())
        if (has(mask, token) && !allows(token)) clear(mask, token);
    if (!keys_->has_doubt()) return;
    if (keys_->where() == ObjectKeys::kInKey) drop_along(0, keys_->key(), mask);
    for (const uint32_t token : store_.key_tokens().beginning(keys_->where())) {
        if (!has(mask, token)) continue;
        if (may_be_stuck(vocab.bytes(token)) && !allows(token)) clear(mask, token);
    }
}

/// Drops the tokens below a node whose bytes lead into a key that would be left without an end.
void Matcher::drop_along(uint32_t node, const KeyHash &key, uint32_t *mask) {
    const auto &nodes = store_.vocab().nodes();
    for (uint32_t child = node + 1; child < nodes[node].end; child = nodes[child].end) {
        const uint8_t byte = nodes[child].byte;
        if (byte == '"' && !key.escaped) continue;
        KeyHash longer = key;
        longer.feed(byte);
        if (keys_->is_doubtful(longer)) drop_below(child, mask);
        else if (keys_->is_beginning(longer)) drop_along(child, longer, mask);
    }
}

/// Clears what the stacks do not take of the tokens that begin with the bytes of a trie node.
void Matcher::drop_below(uint32_t node, uint32_t *mask) {
    const Vocab &vocab = store_.vocab();
    const auto &nodes = vocab.nodes();
    std::optional<bool> dead;
    for (uint32_t rank = nodes[node].first; rank < nodes[nodes[node].end].first; ++rank) {
        const uint32_t token = vocab.order()[rank];
        if (!has(mask, token)) continue;
        // Mostly they all die at the node, unless a stack reads something else than JSON there.
        if (!dead) dead = !takes_tokens(now()) && !reads(vocab.path(node));
        if (*dead || !allows(token)) clear(mask, token);
    }
}

/// Whether some stack takes these bytes as the beginning of a token.
bool Matcher::reads(std::string_view bytes) {
    const Undone reading(keys_.get());
    const Scratch scratch(*this, false);
    Stacks next;
    at_ = position();
    return take_bytes(before_token(), bytes, true, next);
}

/// Whether the token would be accepted.
bool Matcher::allows(uint32_t token) {
    const Undone reading(keys_.get());
    const Scratch scratch(*this, false);
    Stacks next;
    return try_token(token, next);
}

// ObjectKeys that do not grow.

Stacks Matcher::stepped(const Stacks &from, uint8_t byte) {
    Stacks to;
    mover_->step(from, byte, false, to);
    return to;
}

/// Whether a key goes on from here, or ends, that its object does not have. `budget`: so many bytes may be tried.
bool Matcher::has_other_key(const Stacks &at, const KeyHash &key, int &budget) {
    if (at.complete || takes_tokens(at) || --budget < 0) return true;
    const std::array<bool, 256> next = next_bytes(at);
    const bool may_end = next['"'] && !key.escaped;
    if (may_end && !keys_->may_have(key)) return true;
    std::vector<uint8_t> ways;  // that have to be followed
    for (int b = 0; b < 256; ++b) {
        const auto byte = static_cast<uint8_t>(b);
        if (!next[byte] || (may_end && byte == '"')) continue;
        KeyHash longer = key;
        longer.feed(byte);
        if (!keys_->is_doubtful(longer)) return true;
        ways.push_back(byte);
    }
    return std::any_of(ways.begin(), ways.end(), [&](uint8_t byte) {
        KeyHash longer = key;
        longer.feed(byte);
        return has_other_key(stepped(at, byte), longer, budget);
    });
}

bool Matcher::has_other_key(const Stacks &at, const KeyHash &key) {
    int budget = kMaxTried;
    return has_other_key(at, key, budget);
}

/// Whether a key that is not declared goes on from here, or ends, that its object does not have: it may come whatever
/// else has come. One that is hard to find is left in doubt.
bool Matcher::has_undeclared_key(const Stacks &at, const KeyHash &key) {
    const std::array<bool, 256> next = next_bytes(at);
    const auto ends_new = [&](const Stacks &from) {
        met_key_ = false;
        stepped(from, '"');
        return met_key_;
    };
    if (next['"'] && !key.escaped && !keys_->may_have(key) && ends_new(at)) return true;
    int tried = 0;
    for (int b = 0; b < 256 && tried < kMaxLeaving; ++b) {
        const auto byte = static_cast<uint8_t>(b);
        KeyHash longer = key;
        longer.feed(byte);
        if (!next[byte] || (byte == '"' && !key.escaped) || keys_->is_beginning(longer)) continue;
        ++tried;
        Stacks far = stepped(at, byte);
        for (int steps = 0; steps < kMaxFollowed; ++steps) {
            const std::array<bool, 256> then = next_bytes(far);
            if (then['"'] && ends_new(far)) return true;
            const auto way = std::find(then.begin(), then.end(), true);
            if (then['"'] || way == then.end()) break;
            far = stepped(far, static_cast<uint8_t>(way - then.begin()));
        }
    }
    return false;
}

/// Whether what was read leads to the end of some output, given the keys that are there.
bool Matcher::can_go_on(const Stacks &at) {
    if (!keys_ || !keys_->may_be_stuck()) return true;
    const Scratch scratch(*this, true);
    if (keys_->where() == ObjectKeys::kInKey) return has_other_key(at, keys_->key());
    const std::array<bool, 256> next = next_bytes(at);
    for (int b = 0; b < 256; ++b)
        if (next[static_cast<size_t>(b)] && b != '"' && !is_blank(static_cast<uint8_t>(b))) return true;
    return at.complete || takes_tokens(at) || has_other_key(stepped(at, '"'), {});
}

/// Behind a quote that may begin a key, and end one whose beginnings are to be learned.
void Matcher::pass_quote(const Stacks &behind, Quote &last) {
    if (!keys_->is_behind_quote()) return;
    if (keys_->is_pending()) {
        const Scratch scratch(*this, true);
        learn_beginnings(last.at == keys_->pending_begin() ? last.stacks : replayed(keys_->pending_begin()));
        keys_->settle_pending();
    }
    last = {behind, at_};
}

/// The stacks after so many bytes of output, those of the last steps included.
Stacks Matcher::replayed(uint64_t to) {
    const auto after = std::upper_bound(position_.begin(), position_.end(), to);
    const size_t step = static_cast<size_t>(after - position_.begin()) - 1;
    Stacks at = history_[step];
    for (uint64_t i = position_[step]; i < to; ++i) at = stepped(at, static_cast<uint8_t>(keys_->output()[i]));
    return at;
}

/// Goes over a key that has just ended, from the stacks at its first byte.
void Matcher::learn_beginnings(Stacks at) {
    std::vector<std::pair<Stacks, KeyHash>> places{{at, {}}};
    for (const char byte : keys_->pending()) {
        KeyHash key = places.back().second;
        key.feed(static_cast<uint8_t>(byte));
        at = stepped(at, static_cast<uint8_t>(byte));
        if (at.dead()) return;
        places.emplace_back(at, key);
    }
    bool doubtful = true;
    for (size_t i = places.size(); i-- > 0;) {
        doubtful = doubtful && !has_undeclared_key(places[i].first, places[i].second);
        keys_->add_beginning(places[i].second, doubtful);
    }
}

}  // namespace dovetail
