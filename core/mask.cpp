#include "mask.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "store.h"

namespace dovetail {

namespace {

/// Appends the tokens of a finished node.
void add_tokens(const MaskNode &node, uint32_t mask_words, std::vector<uint32_t> &out) {
    out.insert(out.end(), node.tokens.get(), node.tokens.get() + node.token_count);
    if (!node.dense) return;
    for (uint32_t w = 0; w < mask_words; ++w)
        for (uint32_t bits = node.dense[w]; bits; bits &= bits - 1)
            out.push_back(w * 32 + static_cast<uint32_t>(std::countr_zero(bits)));
}

}  // namespace

MaskRoots::MaskRoots(MaskCache &c, DState &d) : cache(c), state(d), after(c.first_) {
    if (after) after->before = this;
    cache.first_ = this;
}

MaskRoots::~MaskRoots() {
    each([&](MaskNode &node) { cache.drop(node); });
    if (profile) cache.bytes_ -= profile->memory();
    (before ? before->after : cache.first_) = after;
    if (after) after->before = before;
}

MaskCache::MaskCache(Store &store, size_t limit)
    : store_(store), limit_(limit), walker_(std::make_unique<Walker>(store.vocab())) {}

MaskCache::~MaskCache() = default;

Counter MaskCache::clamp(Counter c, bool counts_tokens) const {
    // No token makes more steps than it has bytes, so larger counters behave alike.
    const uint32_t enough = store_.vocab().longest() + 2;
    c.left = std::min(c.left, enough);
    // A token spends one of its budget; whether another is left matters inside a character. Masks are between tokens.
    c.need = counts_tokens ? std::min(c.need & ~kTokenCounted, 2u) : std::min(c.need, enough);
    return c;
}

void MaskCache::fill(const Stacks &stacks, uint32_t *out) {
    ++fills_;
    nodes_.clear();
    for (const Config &top : stacks.tops) {
        MaskNode *node = &root(top);
        nodes_.push_back(node);
        for (const Frame *f = top.parent; f && node->has_rest; f = f->parent) {
            node = &below(*node, *f);
            nodes_.push_back(node);
        }
    }
    write(nodes_, out);
    if (bytes_ > limit_) make_room();
}

MaskNode &MaskCache::root(const Config &top) {
    DState &d = *top.d;
    MaskNode *node = d.plain_mask;
    if (top.counter == Counter{} && node) {
        node->used = fills_;
        return *node;
    }
    if (!d.masks) d.masks = std::make_unique<MaskRoots>(*this, d);
    const Counter counter = clamp(top.counter, d.counts_tokens);
    if (counter == Counter{}) {
        if (!d.masks->plain) d.masks->plain = make_root(d, counter);
        node = d.plain_mask = d.masks->plain.get();
    } else {
        auto slot = d.masks->counted.find(MaskKey{0, counter});
        if (slot == d.masks->counted.end())
            slot = d.masks->counted.emplace(MaskKey{0, counter}, make_root(d, counter)).first;
        node = slot->second.get();
    }
    node->used = fills_;
    return *node;
}

std::unique_ptr<MaskNode> MaskCache::make_root(DState &d, Counter counter) {
    MaskParts parts;
    const Config top{&d, counter, nullptr, nullptr};
    if (!walk_profiled(top, parts)) {
        parts.clear();
        walker_->walk_all(top, parts);
    }
    if (d.extra)
        for (const TokenEdge &e : d.extra->tokens)
            for (uint32_t t = 0; t < store_.vocab().size(); ++t)
                if (e.set->has(t, store_.vocab())) parts.tokens.push_back(t);
    return finished(parts);
}

bool MaskCache::walk_profiled(const Config &top, MaskParts &parts) {
    if (!top.d->counter_live || top.d->counts_tokens) return false;
    std::unique_ptr<LoopProfile> &profile = top.d->masks->profile;
    if (!profile) {
        profile = std::make_unique<LoopProfile>(walker_->profile(*top.d));
        bytes_ += profile->memory();
    }
    return profile->usable && walker_->walk_loop(top, *profile, parts);
}

MaskNode &MaskCache::below(MaskNode &node, const Frame &frame) {
    const MaskKey key{frame.site_id, clamp(frame.counter, false)};
    if (!(node.last && node.last_site == key.id && node.last_counter == key.counter)) {
        auto slot = node.below.find(key);
        if (slot == node.below.end()) slot = node.below.emplace(key, make_below(node, frame, key.counter)).first;
        node.last_site = key.id;
        node.last_counter = key.counter;
        node.last = slot->second.get();
    }
    node.last->used = fills_;
    return *node.last;
}

std::unique_ptr<MaskNode> MaskCache::make_below(MaskNode &node, const Frame &frame, Counter counter) {
    MaskParts parts, walked;
    Stacks stacks;
    std::vector<uint32_t> exits;
    for (const Rest &rest : node.rest) {
        const auto &returns = frame.site->returns;
        if (rest.exit >= returns.size() || !returns[rest.exit].state) continue;
        DState *state = returns[rest.exit].state;
        walker_->arrive(state, counter, stacks, exits);
        for (uint32_t exit : exits) {
            std::vector<uint32_t> &to = parts.rest_of(exit);
            to.insert(to.end(), rest.nodes.begin(), rest.nodes.end());
        }
        // States of other rules come last: going on from them uses the walker again, and their frames are copied first.
        const auto foreign = std::stable_partition(stacks.tops.begin(), stacks.tops.end(),
                                                   [&](const Config &c) { return c.d->owner == state->owner; });
        walked.clear();
        walker_->walk_rest(rest.nodes, {stacks.tops.begin(), foreign}, walked);
        parts.tokens.insert(parts.tokens.end(), walked.tokens.begin(), walked.tokens.end());
        parts.add_rest(walked.rest);
        const std::vector<Config> others(foreign, stacks.tops.end());
        std::vector<std::vector<Frame>> callers;
        for (const Config &c : others) {
            std::vector<Frame> &list = callers.emplace_back();
            for (const Frame *f = c.parent; f; f = f->parent) list.push_back(*f);
        }
        for (size_t i = 0; i < others.size(); ++i) {
            MaskNode *at = &go_on(node, rest, others[i]);
            add_tokens(*at, store_.vocab().mask_words(), parts.tokens);
            size_t up = 0;
            for (; up < callers[i].size() && at->has_rest; ++up) {
                at = &below(*at, callers[i][up]);
                add_tokens(*at, store_.vocab().mask_words(), parts.tokens);
            }
            if (up == callers[i].size()) parts.add_rest(at->rest);
        }
    }
    return finished(parts);
}

MaskNode &MaskCache::go_on(MaskNode &node, const Rest &rest, const Config &top) {
    const MaskKey key{top.d->id, clamp(top.counter, top.d->counts_tokens), rest.exit};
    auto slot = node.below.find(key);
    if (slot == node.below.end()) {
        MaskParts parts;
        const Config alone{top.d, key.counter, nullptr, nullptr};
        walker_->walk_rest(rest.nodes, {&alone, 1}, parts);
        slot = node.below.emplace(key, finished(parts)).first;
    }
    slot->second->used = fills_;
    return *slot->second;
}

std::unique_ptr<MaskNode> MaskCache::finished(MaskParts &parts) {
    auto node = std::make_unique<MaskNode>();
    const uint32_t words = store_.vocab().mask_words();
    node->bytes = sizeof(MaskNode) + 64;
    if (!parts.dense.empty() || parts.tokens.size() > words / 4) {
        node->dense = std::make_unique<uint32_t[]>(words);
        std::copy(parts.dense.begin(), parts.dense.end(), node->dense.get());
        for (uint32_t t : parts.tokens) node->dense[t / 32] |= 1u << (t % 32);
        node->bytes += words * 4;
    } else {
        std::sort(parts.tokens.begin(), parts.tokens.end());
        parts.tokens.erase(std::unique(parts.tokens.begin(), parts.tokens.end()), parts.tokens.end());
        node->token_count = static_cast<uint32_t>(parts.tokens.size());
        node->tokens = std::make_unique<uint32_t[]>(parts.tokens.size());
        std::copy(parts.tokens.begin(), parts.tokens.end(), node->tokens.get());
        node->bytes += node->token_count * 4;
    }
    const auto &nodes = store_.vocab().nodes();
    for (Rest &r : parts.rest) {
        std::sort(r.nodes.begin(), r.nodes.end(), [&](uint32_t a, uint32_t b) {
            return nodes[a].byte != nodes[b].byte ? nodes[a].byte < nodes[b].byte : a < b;
        });
        r.nodes.erase(std::unique(r.nodes.begin(), r.nodes.end()), r.nodes.end());
        r.nodes.shrink_to_fit();
        node->bytes += static_cast<uint32_t>(sizeof(r) + r.nodes.size() * 4);
    }
    std::erase_if(parts.rest, [](const Rest &r) { return r.nodes.empty(); });
    node->rest = std::move(parts.rest);
    node->has_rest = !node->rest.empty();
    bytes_ += node->bytes;
    return node;
}

void MaskCache::write(const std::vector<MaskNode *> &nodes, uint32_t *out) const {
    const size_t words = store_.vocab().mask_words();
    const MaskNode *base = nullptr;
    for (const MaskNode *n : nodes)
        if (n->dense) {
            base = n;
            break;
        }
    if (base) std::memcpy(out, base->dense.get(), words * 4);
    else std::memset(out, 0, words * 4);
    for (const MaskNode *n : nodes) {
        if (n == base) continue;
        if (n->dense)
            for (size_t i = 0; i < words; ++i) out[i] |= n->dense[i];
        for (uint32_t i = 0; i < n->token_count; ++i) out[n->tokens[i] / 32] |= 1u << (n->tokens[i] % 32);
    }
}

void MaskCache::drop(MaskNode &node) {
    std::vector<MaskNode *> pending{&node};
    while (!pending.empty()) {
        MaskNode *n = pending.back();
        pending.pop_back();
        bytes_ -= n->bytes;
        for (auto &[key, child] : n->below) pending.push_back(child.get());
    }
}

void MaskCache::make_room() {
    // A caller's node is never used later than the node above it, so dropping by age never orphans one.
    std::vector<MaskNode *> all;
    auto gather = [&] {
        all.clear();
        for (MaskRoots *r = first_; r; r = r->after) r->each([&](MaskNode &node) { all.push_back(&node); });
    };
    gather();
    std::vector<std::pair<uint64_t, uint32_t>> ages;
    for (size_t i = 0; i < all.size(); ++i) {
        ages.emplace_back(all[i]->used, all[i]->bytes);
        for (auto &[key, child] : all[i]->below) all.push_back(child.get());
    }
    std::sort(ages.begin(), ages.end());
    size_t freed = 0;
    uint64_t oldest = 0;
    for (const auto &[used, bytes] : ages) {
        if (bytes_ - freed <= limit_ / 2) break;
        freed += bytes;
        oldest = used + 1;
    }
    auto old = [&](MaskNode &node) {
        if (node.used >= oldest) return false;
        drop(node);
        return true;
    };
    for (MaskRoots *r = first_; r; r = r->after) {
        if (r->plain && old(*r->plain)) {
            r->plain.reset();
            r->state.plain_mask = nullptr;
        }
        std::erase_if(r->counted, [&](auto &entry) { return old(*entry.second); });
    }
    gather();
    for (size_t i = 0; i < all.size(); ++i) {
        all[i]->last = nullptr;
        std::erase_if(all[i]->below, [&](auto &entry) { return old(*entry.second); });
        for (auto &[key, child] : all[i]->below) all.push_back(child.get());
    }
}

}  // namespace dovetail
