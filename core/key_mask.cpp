// What masks leave to each generation: a key that is there already must not end again.
#include <algorithm>

#include "key_tokens.h"
#include "matcher.h"

namespace dovetail {

namespace {

bool has(const uint32_t *mask, uint32_t token) { return mask[token / 32] >> (token % 32) & 1; }
void clear(uint32_t *mask, uint32_t token) { mask[token / 32] &= ~(1u << (token % 32)); }

}  // namespace

void Matcher::drop_known_keys(uint32_t *mask) {
    const KeyTokens &tokens = store_.key_tokens();
    const Vocab &vocab = store_.vocab();
    if (keys_->on() && keys_->where() == Keys::kInKey && keys_->has_keys()) {
        for (const uint32_t node : tokens.closing(keys_->escaped())) {
            KeyHash key = keys_->key();
            const std::string_view path = vocab.path(node);
            for (const char c : path.substr(0, path.size() - 1)) key.feed(static_cast<uint8_t>(c));
            if (!key.in_escape() && keys_->may_have(key)) drop_below(node, mask);
        }
    }
    for (const uint32_t token : keys_->on() ? tokens.whole(keys_->where()) : tokens.pairs())
        if (has(mask, token) && !allows(token)) clear(mask, token);
}

/// Clears what the stacks do not take of the tokens that begin with the bytes of a trie node.
void Matcher::drop_below(uint32_t node, uint32_t *mask) {
    const Vocab &vocab = store_.vocab();
    const auto &nodes = vocab.nodes();
    const auto by_token = [](const Config &c) { return c.d->extra && !c.d->extra->tokens.empty(); };
    bool dead = false;
    for (uint32_t rank = nodes[node].first; rank < nodes[nodes[node].end].first; ++rank) {
        const uint32_t token = vocab.order()[rank];
        if (!has(mask, token)) continue;
        // Mostly they all die at the node, unless a stack reads something else than JSON there.
        dead = dead || (std::none_of(now().tops.begin(), now().tops.end(), by_token) && !reads(vocab.path(node)));
        if (dead || !allows(token)) clear(mask, token);
    }
}

/// Whether some stack takes these bytes as the beginning of a token.
bool Matcher::reads(std::string_view bytes) {
    const size_t frames = frames_->used(), marks = marks_->used();
    Stacks next;
    at_ = position();
    const bool alive = take_bytes(before_token(), bytes, true, next);
    keys_->undo();
    frames_->rewind(frames);
    marks_->rewind(marks);
    return alive;
}

/// Whether the token would be accepted.
bool Matcher::allows(uint32_t token) {
    const size_t frames = frames_->used(), marks = marks_->used();
    Stacks next;
    const bool allowed = try_token(token, next);
    keys_->undo();
    frames_->rewind(frames);
    marks_->rewind(marks);
    return allowed;
}

}  // namespace dovetail
