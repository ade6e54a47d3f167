#include "mask.h"

#include <algorithm>
#include <cstring>

#include "store.h"

namespace dovetail {

namespace {

constexpr uint64_t kMaxWalkSteps = 40'000'000;

}  // namespace

/// Walks the trie with a few stacks whose callers are unknown: leaving the lowest frame is noted, not followed.
class MaskCache::Walker {
  public:
    explicit Walker(Store &store) : vocab_(store.vocab()), mover_(*this, frames_), levels_(vocab_.longest() + 2) {}

    std::vector<uint32_t> tokens;
    std::vector<MaskNode::Rest> rest;

    const Mark *opened(const CallSite &, const Mark *) { return nullptr; }
    const Mark *closed(const CallSite &, uint32_t, const Mark *) { return nullptr; }
    void bottom(uint32_t exit, const Mark *, Stacks &) {
        if (std::find(exits_.begin(), exits_.end(), exit) == exits_.end()) exits_.push_back(exit);
    }

    void begin() {
        tokens.clear();
        rest.clear();
        frames_.rewind(0);
        steps_ = 0;
    }

    /// Every token from the root of the trie.
    void walk_all(const Config &top) {
        levels_[0].clear();
        levels_[0].tops.push_back({top.d, top.counter, nullptr, nullptr});
        top.d->each_range([&](uint8_t low, uint8_t high, DState *) {
            for (int b = low; b <= high; ++b) {
                const uint32_t node = vocab_.first_node(static_cast<uint8_t>(b));
                if (node != kNone) enter(node, 0);
            }
        });
    }

    /// The trie nodes in `from`, after `state` has been returned to.
    void walk_rest(const std::vector<uint32_t> &from, DState *state, Counter counter) {
        exits_.clear();
        levels_[0].clear();
        mover_.arrive(state, counter, nullptr, nullptr, levels_[0]);
        const std::vector<uint32_t> left_at_once = exits_;
        const auto &nodes = vocab_.nodes();
        bool wanted[256] = {};
        for (const Config &c : levels_[0].tops)
            c.d->each_range([&](uint8_t low, uint8_t high, DState *) { std::fill(wanted + low, wanted + high + 1, true); });
        for (auto it = from.begin(); it != from.end();) {
            const uint8_t byte = nodes[*it].byte;
            const auto end = std::upper_bound(it, from.end(), byte, [&](uint8_t b, uint32_t n) { return b < nodes[n].byte; });
            for (; it != end; ++it) {
                const bool whole = wanted[byte] && enter(*it, 0);
                if (!whole)
                    for (uint32_t exit : left_at_once) rest_of(exit).push_back(*it);
            }
        }
    }

    /// Gives `rest` its final order and frees what a walk does not need.
    void sort_rest() {
        const auto &nodes = vocab_.nodes();
        for (MaskNode::Rest &r : rest) {
            std::sort(r.nodes.begin(), r.nodes.end(), [&](uint32_t a, uint32_t b) {
                return nodes[a].byte != nodes[b].byte ? nodes[a].byte < nodes[b].byte : a < b;
            });
            r.nodes.erase(std::unique(r.nodes.begin(), r.nodes.end()), r.nodes.end());
            r.nodes.shrink_to_fit();
        }
        std::erase_if(rest, [](const MaskNode::Rest &r) { return r.nodes.empty(); });
        std::sort(rest.begin(), rest.end(), [](const auto &a, const auto &b) { return a.exit < b.exit; });
    }

  private:
    std::vector<uint32_t> &rest_of(uint32_t exit) {
        for (MaskNode::Rest &r : rest)
            if (r.exit == exit) return r.nodes;
        rest.push_back({exit, {}});
        return rest.back().nodes;
    }

    void take(uint32_t first, uint32_t last) {
        tokens.insert(tokens.end(), vocab_.order().begin() + first, vocab_.order().begin() + last);
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
            whole = to.tops.empty() ? false : children(node, level + 1, &exits);
            if (to.tops.empty())
                for (uint32_t c = node + 1; c < at.end; c = nodes[c].end)
                    for (uint32_t exit : exits) rest_of(exit).push_back(c);
        }
        frames_.rewind(frames);
        return whole;
    }

    bool children(uint32_t node, size_t level, const std::vector<uint32_t> *exits = nullptr) {
        const auto &nodes = vocab_.nodes();
        const Stacks &stacks = levels_[level];
        const DState *only = stacks.tops.size() == 1 ? stacks.tops[0].d : nullptr;
        bool all = true;
        for (uint32_t c = node + 1; c < nodes[node].end; c = nodes[c].end) {
            if ((!only || only->next(nodes[c].byte)) && enter(c, level)) continue;
            all = false;
            if (exits)
                for (uint32_t exit : *exits) rest_of(exit).push_back(c);
        }
        return all;
    }

    /// Does every path below the node lead from this state back to itself?
    bool covers(const Config &c, uint32_t node) {
        if (c.d->has_steps || !c.d->has_bytes) return false;
        const SubtreeBytes &below = vocab_.below()[node];
        const TrieNode &at = vocab_.nodes()[node];
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
    uint64_t steps_ = 0;
};

MaskRoots::MaskRoots(MaskCache &c) : cache(c), after(c.first_) {
    if (after) after->before = this;
    cache.first_ = this;
}

MaskRoots::~MaskRoots() {
    for (auto &[key, node] : roots) cache.drop(*node);
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
    MaskRoots &roots = *d.masks;
    const Counter counter = clamp(top.counter, d.owner->counts_tokens());
    const bool plain = counter == Counter{};
    if (plain && roots.plain) {
        roots.plain->used = fills_;
        return *roots.plain;
    }
    auto slot = roots.roots.find(MaskKey{0, counter});
    if (slot == roots.roots.end()) {
        auto node = std::make_unique<MaskNode>();
        walker_->begin();
        walker_->walk_all({&d, counter, nullptr, nullptr});
        std::vector<uint32_t> tokens = std::move(walker_->tokens);
        if (d.extra)
            for (const TokenEdge &e : d.extra->tokens)
                for (uint32_t t = 0; t < store_.vocab().size(); ++t)
                    if (e.set->has(t, store_.vocab())) tokens.push_back(t);
        finish(*node, std::move(tokens));
        slot = roots.roots.emplace(MaskKey{0, counter}, std::move(node)).first;
        if (plain) roots.plain = slot->second.get();
    }
    slot->second->used = fills_;
    return *slot->second;
}

MaskNode &MaskCache::below(MaskNode &node, const Frame &frame) {
    const MaskKey key{frame.site->id, clamp(frame.counter, false)};
    if (!(node.last && node.last_key == key)) {
        auto slot = node.below.find(key);
        if (slot == node.below.end()) {
            auto made = std::make_unique<MaskNode>();
            walker_->begin();
            for (const MaskNode::Rest &r : node.rest) {
                const auto &returns = frame.site->returns;
                if (r.exit < returns.size() && returns[r.exit].state)
                    walker_->walk_rest(r.nodes, returns[r.exit].state, key.counter);
            }
            finish(*made, std::move(walker_->tokens));
            slot = node.below.emplace(key, std::move(made)).first;
        }
        node.last_key = key;
        node.last = slot->second.get();
    }
    node.last->used = fills_;
    return *node.last;
}

void MaskCache::finish(MaskNode &node, std::vector<uint32_t> tokens) {
    const uint32_t words = store_.vocab().mask_words();
    node.bytes = sizeof(MaskNode) + 64;
    if (tokens.size() > words / 2) {
        node.dense = std::make_unique<uint32_t[]>(words);
        for (uint32_t t : tokens) node.dense[t / 32] |= 1u << (t % 32);
        node.bytes += words * 4;
    } else {
        std::sort(tokens.begin(), tokens.end());
        tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
        node.tokens = std::vector<uint32_t>(tokens.begin(), tokens.end());
        node.bytes += static_cast<uint32_t>(node.tokens.size() * 4);
    }
    walker_->sort_rest();
    node.rest = std::move(walker_->rest);
    for (const MaskNode::Rest &r : node.rest) node.bytes += static_cast<uint32_t>(sizeof(r) + r.nodes.size() * 4);
    bytes_ += node.bytes;
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
    std::vector<std::pair<uint64_t, uint32_t>> ages;
    std::vector<MaskNode *> pending;
    for (MaskRoots *r = first_; r; r = r->after)
        for (auto &[key, node] : r->roots) pending.push_back(node.get());
    for (size_t i = 0; i < pending.size(); ++i) {
        ages.emplace_back(pending[i]->used, pending[i]->bytes);
        for (auto &[key, child] : pending[i]->below) pending.push_back(child.get());
    }
    std::sort(ages.begin(), ages.end());
    size_t freed = 0;
    uint64_t oldest = 0;
    for (const auto &[used, bytes] : ages) {
        if (bytes_ - freed <= limit_ / 2) break;
        freed += bytes;
        oldest = used + 1;
    }
    auto sweep = [&](auto &map) {
        std::erase_if(map, [&](const auto &entry) {
            if (entry.second->used >= oldest) return false;
            drop(*entry.second);
            return true;
        });
    };
    for (MaskRoots *r = first_; r; r = r->after) {
        r->plain = nullptr;
        sweep(r->roots);
    }
    pending.clear();
    for (MaskRoots *r = first_; r; r = r->after)
        for (auto &[key, node] : r->roots) pending.push_back(node.get());
    for (size_t i = 0; i < pending.size(); ++i) {
        pending[i]->last = nullptr;
        sweep(pending[i]->below);
        for (auto &[key, child] : pending[i]->below) pending.push_back(child.get());
    }
}

}  // namespace dovetail
