#include "mask.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "store.h"

namespace dovetail {

namespace {

constexpr uint64_t kMaxWalkSteps = 40'000'000;

}  // namespace

std::vector<uint32_t> &MaskParts::rest_of(uint32_t exit) {
    for (MaskNode::Rest &r : rest)
        if (r.exit == exit) return r.nodes;
    rest.push_back({exit, {}});
    return rest.back().nodes;
}

void MaskParts::add(const MaskNode &node, uint32_t mask_words) {
    tokens.insert(tokens.end(), node.tokens.begin(), node.tokens.end());
    if (!node.dense) return;
    for (uint32_t w = 0; w < mask_words; ++w)
        for (uint32_t bits = node.dense[w]; bits; bits &= bits - 1)
            tokens.push_back(w * 32 + static_cast<uint32_t>(std::countr_zero(bits)));
}

/// Walks the trie with a few stacks whose callers are unknown: leaving the lowest frame is noted, not followed.
class MaskCache::Walker {
  public:
    explicit Walker(Store &store) : vocab_(store.vocab()), mover_(*this, frames_), levels_(vocab_.longest() + 2) {}

    const Mark *opened(const CallSite &, const Mark *) { return nullptr; }
    const Mark *closed(const CallSite &, uint32_t, const Mark *) { return nullptr; }
    void bottom(uint32_t exit, const Mark *, Stacks &) {
        if (std::find(exits_.begin(), exits_.end(), exit) == exits_.end()) exits_.push_back(exit);
    }

    /// Every token from the root of the trie.
    void walk_all(const Config &top, MaskParts &out) {
        begin(out);
        levels_[0].tops.push_back({top.d, top.counter, nullptr, nullptr});
        top.d->each_range([&](uint8_t low, uint8_t high, DState *) {
            for (int b = low; b <= high; ++b) {
                const uint32_t node = vocab_.first_node(static_cast<uint8_t>(b));
                if (node != kNone) enter(node, 0);
            }
        });
    }

    /// What a return leads to before the next byte; the frames live until the walker is used again.
    void arrive(DState *state, Counter counter, Stacks &out, std::vector<uint32_t> &exits) {
        frames_.rewind(0);
        exits_.clear();
        out.clear();
        mover_.arrive(state, counter, nullptr, nullptr, out);
        exits = exits_;
    }

    /// The trie nodes in `from`, which are sorted by byte, with these tops as the lowest frames.
    void walk_rest(const std::vector<uint32_t> &from, std::span<const Config> tops, MaskParts &out) {
        begin(out);
        levels_[0].tops.assign(tops.begin(), tops.end());
        const auto &nodes = vocab_.nodes();
        bool wanted[256] = {};
        for (const Config &c : tops)
            c.d->each_range([&](uint8_t low, uint8_t high, DState *) { std::fill(wanted + low, wanted + high + 1, true); });
        for (auto it = from.begin(); it != from.end();) {
            const uint8_t byte = nodes[*it].byte;
            const auto end = std::upper_bound(it, from.end(), byte, [&](uint8_t b, uint32_t n) { return b < nodes[n].byte; });
            if (wanted[byte])
                for (auto at = it; at != end; ++at) enter(*at, 0);
            it = end;
        }
    }

  private:
    /// The arena is not rewound: tops that came from `arrive` keep their frames.
    void begin(MaskParts &out) {
        out_ = &out;
        levels_[0].clear();
        steps_ = 0;
    }

    void take(uint32_t first, uint32_t last) {
        out_->tokens.insert(out_->tokens.end(), vocab_.order().begin() + first, vocab_.order().begin() + last);
    }

    /// Takes the edge into `node`; says whether every token at and below it is allowed.
    bool enter(uint32_t node, size_t level) {
        const auto &nodes = vocab_.nodes();
        const TrieNode &at = nodes[node];
        if (++steps_ > kMaxWalkSteps) throw LimitError("one mask takes more than 40,000,000 steps; simplify the grammar");
        const size_t frames = frames_.used();
        exits_.clear();
        Stacks &to = levels_[level + 1];
        mover_.step(levels_[level], at.byte, true, to);
        if (to.tops.empty() && exits_.empty()) {
            frames_.rewind(frames);
            return false;
        }
        bool whole = true;
        const bool leaf = node + 1 == at.end;
        if (leaf || std::any_of(to.tops.begin(), to.tops.end(), [&](const Config &c) { return covers(c, node); })) {
            // What other stacks could add below is allowed already.
            take(at.first, nodes[at.end].first);
        } else {
            take(at.first, nodes[node + 1].first);
            const std::vector<uint32_t> exits = exits_;
            whole = children(node, level + 1, exits);
        }
        frames_.rewind(frames);
        return whole;
    }

    /// Enters every child; a child that is not wholly allowed is left to the callers behind `exits`.
    bool children(uint32_t node, size_t level, const std::vector<uint32_t> &exits) {
        const auto &nodes = vocab_.nodes();
        const Stacks &stacks = levels_[level];
        const DState *only = stacks.tops.size() == 1 ? stacks.tops[0].d : nullptr;
        bool all = true;
        for (uint32_t c = node + 1; c < nodes[node].end; c = nodes[c].end) {
            const bool possible = only ? only->next(nodes[c].byte) != nullptr : !stacks.tops.empty();
            if (possible && enter(c, level)) continue;
            all = false;
            for (uint32_t exit : exits) out_->rest_of(exit).push_back(c);
        }
        return all;
    }

    /// Does every path below the node lead from this state back to itself?
    bool covers(const Config &c, uint32_t node) {
        if (c.d->has_steps || !c.d->has_bytes) return false;
        const TrieNode &at = vocab_.nodes()[node];
        // Most states do not loop at all: one byte tells before the loops are worked out.
        const uint8_t byte = vocab_.nodes()[node + 1].byte;
        const DState *sample = c.d->next(byte);
        if (!sample || (sample != c.d && !sample->has_steps && byte < 0x80)) return false;
        const SubtreeBytes &below = vocab_.below()[node];
        const Loops &loops = c.d->owner->loops(*c.d);
        if ((below.low & ~loops.low) || (below.high & ~loops.high)) return false;
        if (below.other && !(loops.others && (at.utf8_ok & 1))) return false;
        if (!loops.ticks) return true;
        return c.counter.left > at.height && (c.counter.need == 0 || c.counter.need > at.height + 1u);
    }

    const Vocab &vocab_;
    Arena<Frame> frames_;
    Mover<Walker> mover_;
    std::vector<Stacks> levels_;
    std::vector<uint32_t> exits_;
    MaskParts *out_ = nullptr;
    uint64_t steps_ = 0;
};

MaskRoots::MaskRoots(MaskCache &c) : cache(c), after(c.first_) {
    if (after) after->before = this;
    cache.first_ = this;
}

MaskRoots::~MaskRoots() {
    each([&](MaskNode &node) { cache.drop(node); });
    (before ? before->after : cache.first_) = after;
    if (after) after->before = before;
}

MaskCache::MaskCache(Store &store, size_t limit)
    : store_(store), limit_(limit), walker_(std::make_unique<Walker>(store)) {}

MaskCache::~MaskCache() = default;

Counter MaskCache::clamp(Counter c, bool counts_tokens) const {
    // No token makes more steps than it has bytes, so larger counters behave alike.
    const uint32_t enough = store_.vocab().longest() + 2;
    c.left = std::min(c.left, enough);
    c.need = counts_tokens ? std::min(c.need, 1u) : std::min(c.need, enough);
    return c;
}

void MaskCache::fill(const Stacks &stacks, uint32_t *out) {
    ++fills_;
    nodes_.clear();
    for (const Config &top : stacks.tops) {
        MaskNode *node = &root(top);
        nodes_.push_back(node);
        for (const Frame *f = top.parent; f && !node->rest.empty(); f = f->parent) {
            node = &below(*node, *f);
            nodes_.push_back(node);
        }
    }
    write(nodes_, out);
    if (bytes_ > limit_) make_room();
}

MaskNode &MaskCache::root(const Config &top) {
    DState &d = *top.d;
    if (!d.masks) d.masks = std::make_unique<MaskRoots>(*this);
    const Counter counter = clamp(top.counter, d.owner->counts_tokens());
    MaskNode *node;
    if (counter == Counter{}) {
        if (!d.masks->plain) d.masks->plain = make_root(d, counter);
        node = d.masks->plain.get();
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
    walker_->walk_all({&d, counter, nullptr, nullptr}, parts);
    if (d.extra)
        for (const TokenEdge &e : d.extra->tokens)
            for (uint32_t t = 0; t < store_.vocab().size(); ++t)
                if (e.set->has(t, store_.vocab())) parts.tokens.push_back(t);
    return finished(parts);
}

MaskNode &MaskCache::below(MaskNode &node, const Frame &frame) {
    const MaskKey key{frame.site->id, clamp(frame.counter, false)};
    if (!(node.last && node.last_key == key)) {
        auto slot = node.below.find(key);
        if (slot == node.below.end()) slot = node.below.emplace(key, make_below(node, frame, key.counter)).first;
        node.last_key = key;
        node.last = slot->second.get();
    }
    node.last->used = fills_;
    return *node.last;
}

std::unique_ptr<MaskNode> MaskCache::make_below(MaskNode &node, const Frame &frame, Counter counter) {
    MaskParts parts, walked;
    Stacks stacks;
    std::vector<uint32_t> exits;
    for (const MaskNode::Rest &rest : node.rest) {
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
        for (const MaskNode::Rest &r : walked.rest) {
            std::vector<uint32_t> &to = parts.rest_of(r.exit);
            to.insert(to.end(), r.nodes.begin(), r.nodes.end());
        }
        const std::vector<Config> others(foreign, stacks.tops.end());
        std::vector<std::vector<Frame>> callers;
        for (const Config &c : others) {
            std::vector<Frame> &list = callers.emplace_back();
            for (const Frame *f = c.parent; f; f = f->parent) list.push_back(*f);
        }
        for (size_t i = 0; i < others.size(); ++i) {
            MaskNode *at = &go_on(node, rest, others[i]);
            parts.add(*at, store_.vocab().mask_words());
            size_t up = 0;
            for (; up < callers[i].size() && !at->rest.empty(); ++up) {
                at = &below(*at, callers[i][up]);
                parts.add(*at, store_.vocab().mask_words());
            }
            if (up < callers[i].size()) continue;
            for (const MaskNode::Rest &r : at->rest) {
                std::vector<uint32_t> &to = parts.rest_of(r.exit);
                to.insert(to.end(), r.nodes.begin(), r.nodes.end());
            }
        }
    }
    return finished(parts);
}

MaskNode &MaskCache::go_on(MaskNode &node, const MaskNode::Rest &rest, const Config &top) {
    const MaskKey key{top.d->id, clamp(top.counter, top.d->owner->counts_tokens()), rest.exit};
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
    if (parts.tokens.size() > words / 2) {
        node->dense = std::make_unique<uint32_t[]>(words);
        for (uint32_t t : parts.tokens) node->dense[t / 32] |= 1u << (t % 32);
        node->bytes += words * 4;
    } else {
        std::sort(parts.tokens.begin(), parts.tokens.end());
        parts.tokens.erase(std::unique(parts.tokens.begin(), parts.tokens.end()), parts.tokens.end());
        node->tokens.assign(parts.tokens.begin(), parts.tokens.end());
        node->bytes += static_cast<uint32_t>(node->tokens.size() * 4);
    }
    const auto &nodes = store_.vocab().nodes();
    for (MaskNode::Rest &r : parts.rest) {
        std::sort(r.nodes.begin(), r.nodes.end(), [&](uint32_t a, uint32_t b) {
            return nodes[a].byte != nodes[b].byte ? nodes[a].byte < nodes[b].byte : a < b;
        });
        r.nodes.erase(std::unique(r.nodes.begin(), r.nodes.end()), r.nodes.end());
        r.nodes.shrink_to_fit();
        node->bytes += static_cast<uint32_t>(sizeof(r) + r.nodes.size() * 4);
    }
    std::erase_if(parts.rest, [](const MaskNode::Rest &r) { return r.nodes.empty(); });
    node->rest = std::move(parts.rest);
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
        for (uint32_t t : n->tokens) out[t / 32] |= 1u << (t % 32);
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
        if (r->plain && old(*r->plain)) r->plain.reset();
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
