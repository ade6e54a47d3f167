// Puts a mask together from what the walks have remembered at each call site.

#include "mask/cache.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "grammar/store.h"

namespace dovetail {

namespace {

constexpr size_t kMaxMaking = 4;  // masks that are made for the sake of each other

}  // namespace

MaskNode *MaskMap::find(const MaskKey &key) {
    const Slot *slot = table_.find(key.hash(), [&](const Slot &one) { return one.key == key; });
    return slot ? slot->node.get() : nullptr;
}

MaskRoots::MaskRoots(MaskCache &c, DState &d) : cache(c), state(d), after(c.first_) {
    if (after) after->before = this;
    cache.first_ = this;
}

MaskRoots::~MaskRoots() {
    each([&](MaskNode &node) { cache.drop(node); });
    (before ? before->after : cache.first_) = after;
    if (after) after->before = before;
}

MaskCache::MaskCache(Store &store, size_t limit)
    : store_(store), limit_(limit), shared_masks_(store.vocab(), store.shortcuts.has(Shortcut::SharedBases)), runs_(store.vocab()),
      mask_(store.vocab().rank_words()) {}

MaskCache::~MaskCache() = default;

MaskCache::Tools::Tools(const Store &store, MaskCache &cache) : walker(store.vocab(), cache, store.shortcuts) {}

MaskCache::Turn::Turn(MaskCache &cache) : cache_(cache), place_(cache.walking_) {
    if (place_ == cache.turns_.size()) cache.turns_.push_back(std::make_unique<Tools>(cache.store_, cache));
    tools().parts.clear();
    ++cache.walking_;
}

Counter MaskCache::clamp(const Config &top) const {
    if (top.d->keeps_set) return top.counter;
    if (top.d->measured) return clamp_measured(top.counter, top.d->owner->room());
    return clamp(top.counter, top.d->counts_tokens);
}

Counter MaskCache::clamp(const Frame &frame) const {
    if (frame.site->keeps_set) return frame.counter;
    if (frame.site->measured) return clamp_measured(frame.counter, frame.site->room);
    return clamp(frame.counter, false);
}

Counter MaskCache::clamp(Counter c, bool counts_tokens) const {
    // No token makes more steps than it has bytes, so larger counters behave alike.
    const uint32_t enough = store_.vocab().longest() + 2;
    c.left = std::min(c.left, enough);
    // A token spends one of its budget; whether another is left matters inside a character. Masks are between tokens.
    c.need = counts_tokens ? std::min(c.need & ~kTokenCounted, 2u) : std::min(c.need, enough);
    return c;
}

Counter MaskCache::clamp_measured(Counter c, uint32_t room) const {
    const uint32_t enough = store_.vocab().longest() + room + 1;
    if (c.left >= enough && c.need == 0) return {};
    return {std::min(c.left, enough), std::min(c.need, store_.vocab().longest() + 1)};
}

bool MaskCache::fill_known(const Stacks &stacks, uint32_t *out) {
    static thread_local std::vector<MaskNode *> nodes;
    nodes.clear();
    for (const Config &top : stacks.tops) {
        MaskNode *node = known_root(top);
        if (!node) return false;
        nodes.push_back(node);
        for (const Frame *f = top.parent; f && node->continues; f = f->parent) {
            node = node->find_below({f->site_id, clamp(*f)});
            if (!node) return false;
            nodes.push_back(node);
        }
    }
    for (MaskNode *node : nodes) node->use(fills_);
    write(nodes, out);
    return true;
}

MaskNode *MaskCache::known_root(const Config &top) const {
    const DState &d = *top.d;
    if (top.counter == Counter{} && d.uncounted_mask) return d.uncounted_mask;
    if (!d.masks) return nullptr;
    const Counter counter = clamp(top);
    return counter == Counter{} ? d.masks->uncounted.get() : d.masks->counted.find({0, counter});
}

void MaskCache::fill(const Stacks &stacks, uint32_t *out) {
    ++fills_;
    making_.clear();  // a walk that ran into a limit leaves it
    nodes_.clear();
    runs_.trim();
    for (const Config &top : stacks.tops) {
        MaskNode *node = &root(top);
        nodes_.push_back(node);
        for (const Frame *f = top.parent; f && node->continues; f = f->parent) {
            node = &below(*node, *f);
            nodes_.push_back(node);
        }
    }
    write(nodes_, out);
    if (bytes() > limit_) make_room();
}

MaskNode &MaskCache::root(const Config &top) {
    DState &d = *top.d;
    MaskNode *node = known_root(top);
    if (node) {
        node->use(fills_);
        return *node;
    }
    if (!d.masks) d.masks.reset(d.owner->heap().make<MaskRoots>(*this, d));
    const Counter counter = clamp(top);
    if (counter == Counter{}) {
        d.masks->uncounted = make_root(d, counter);
        node = d.uncounted_mask = d.masks->uncounted.get();
    } else {
        node = d.masks->counted.add({0, counter}, make_root(d, counter));
    }
    node->use(fills_);
    return *node;
}

std::unique_ptr<MaskNode> MaskCache::make_root(DState &d, Counter counter) {
    Turn walker(*this);
    MaskParts &parts = walker.parts();
    const Config top{&d, counter, nullptr, nullptr};
    walker->walk_all(top, parts);
    if (d.extra)
        for (const TokenEdge &e : d.extra->tokens)
            for (uint32_t t = 0; t < store_.vocab().size(); ++t)
                if (e.set->has(t, store_.vocab())) parts.tokens.push_back(t);
    std::unique_ptr<MaskNode> node = finished(parts);
    if (node->base && counter == Counter{}) d.owner->offer_loop_state(d);
    return node;
}

bool MaskCache::chain(DState &loop, const Counterpart *counterpart, const std::vector<Frame> &callers, std::vector<MaskNode *> &out) {
    MaskNode *node = loop.uncounted_mask;
    node->use(fills_);
    out.push_back(node);
    auto add = [&](const Frame &frame) {
        if (!node->continues) return true;
        node = try_below(*node, frame);
        if (node) out.push_back(node);
        return node != nullptr;
    };
    if (counterpart)
        for (auto site = counterpart->sites.rbegin(); site != counterpart->sites.rend(); ++site)
            if (!(*site)->tail && !add(make_frame(nullptr, *site, {}))) return false;
    return std::all_of(callers.begin(), callers.end(), add);
}

/// Null where making it has led here.
MaskNode *MaskCache::try_below(MaskNode &node, const Frame &frame) {
    const MaskKey key{frame.site_id, clamp(frame)};
    if (MaskNode *known = node.find_below(key)) {
        known->use(fills_);
        return known;
    }
    if (making_.size() >= kMaxMaking) return nullptr;
    if (std::find(making_.begin(), making_.end(), std::pair<const MaskNode *, MaskKey>{&node, key}) != making_.end()) return nullptr;
    return &below(node, frame);
}

MaskNode &MaskCache::below(MaskNode &node, const Frame &frame) {
    const MaskKey key{frame.site_id, clamp(frame)};
    MaskNode *child = node.find_below(key);
    if (!child) child = node.add_below(key, make_below(node, frame, key.counter));
    child->use(fills_);
    return *child;
}

std::unique_ptr<MaskNode> MaskCache::make_below(MaskNode &node, const Frame &frame, Counter counter) {
    making_.emplace_back(&node, MaskKey{frame.site_id, counter});
    Turn walker(*this);
    MaskParts &parts = walker.parts();
    for (const Continuation &rest : node.rest) {
        const std::span<const CallSite::Return> returns = frame.site->returns;
        if (rest.exit >= returns.size() || !returns[rest.exit].state) continue;
        const auto &[stacks, exits] = walker->arrive(returns[rest.exit].state, counter);
        for (uint32_t exit : exits) {
            std::vector<Continuation::Node> &to = parts.continuation_of(exit);
            to.insert(to.end(), rest.nodes.begin(), rest.nodes.end());
        }
        walker->walk_continuation(rest.nodes, stacks.tops, parts);
    }
    std::unique_ptr<MaskNode> made = finished(parts);
    making_.pop_back();
    return made;
}

std::unique_ptr<MaskNode> MaskCache::finished(MaskParts &parts) {
    const Vocab &vocab = store_.vocab();
    add_continuations_of_slices(parts);
    auto node = std::make_unique<MaskNode>();
    others_.clear();
    for (uint32_t t : parts.tokens)
        if (!vocab.in_trie(t)) others_.push_back(t);
    std::sort(others_.begin(), others_.end());
    others_.erase(std::unique(others_.begin(), others_.end()), others_.end());
    if (is_large(parts)) node->base = gather_many(parts);
    else gather_few(parts);
    node->token_count = static_cast<uint32_t>(ranks_.size() + others_.size());
    node->tokens = std::make_unique<uint32_t[]>(node->token_count);
    auto end = std::transform(ranks_.begin(), ranks_.end(), node->tokens.get(), [&](uint32_t r) { return vocab.order()[r]; });
    std::copy(others_.begin(), others_.end(), end);
    node->bytes = static_cast<uint32_t>(sizeof(MaskNode) + 64 + node->token_count * 4);
    for (Continuation &r : parts.rest) {
        std::sort(r.nodes.begin(), r.nodes.end());
        r.nodes.erase(std::unique(r.nodes.begin(), r.nodes.end()), r.nodes.end());
        r.nodes.shrink_to_fit();
        node->bytes += static_cast<uint32_t>(sizeof(r) + r.nodes.size() * sizeof(Continuation::Node));
    }
    std::erase_if(parts.rest, [](const Continuation &r) { return r.nodes.empty(); });
    node->rest = std::move(parts.rest);
    node->continues = !node->rest.empty();
    bytes_ += node->bytes;
    return node;
}

/// What leaves the lowest frame below the trie nodes of the slices.
void MaskCache::add_continuations_of_slices(MaskParts &parts) {
    for (uint32_t chain = 0; chain < parts.chains.size(); ++chain) {
        const std::vector<Continuation> &rests = parts.chains[chain].back()->rest;
        if (rests.empty()) continue;
        spans_.clear();
        for (const MaskParts::Slice &slice : parts.slices)
            if (slice.chain == chain) spans_.push_back(slice.nodes);
        if (spans_.empty()) continue;
        std::sort(spans_.begin(), spans_.end(), [](const Span &a, const Span &b) { return a.first < b.first; });
        for (const Continuation &rest : rests) {
            std::vector<Continuation::Node> &to = parts.continuation_of(rest.exit);
            for (const Continuation::Node &n : rest.nodes) {
                auto after =
                    std::upper_bound(spans_.begin(), spans_.end(), n.node, [](uint32_t at, const Span &s) { return at < s.first; });
                if (after != spans_.begin() && n.node < std::prev(after)->last) to.push_back(n);
            }
        }
    }
}

bool MaskCache::is_large(const MaskParts &parts) const {
    if (!parts.runs.empty()) return true;
    size_t count = parts.tokens.size();
    for (const Span &span : parts.ranks) count += span.last - span.first;
    for (const MaskParts::Slice &slice : parts.slices)
        for (const MaskNode *node : parts.chains[slice.chain]) {
            if (node->base) return true;
            count += node->token_count;
        }
    return count > store_.vocab().mask_words() / 4;
}

std::span<const uint32_t> MaskCache::tokens_in(const MaskNode &node, Span ranks) const {
    const std::span<const uint32_t> all(node.tokens.get(), node.token_count);
    const auto before = [&](uint32_t token, uint32_t rank) { return store_.vocab().rank(token) < rank; };
    const auto first = std::lower_bound(all.begin(), all.end(), ranks.first, before);
    return {first, std::lower_bound(first, all.end(), ranks.last, before)};
}

/// Lists the ranks.
void MaskCache::gather_few(const MaskParts &parts) {
    const Vocab &vocab = store_.vocab();
    ranks_.clear();
    for (const Span &span : parts.ranks)
        for (uint32_t r = span.first; r < span.last; ++r) ranks_.push_back(r);
    for (uint32_t t : parts.tokens)
        if (vocab.in_trie(t)) ranks_.push_back(vocab.rank(t));
    for (const MaskParts::Slice &slice : parts.slices) {
        const Span span{vocab.nodes()[slice.nodes.first].first, vocab.nodes()[slice.nodes.last].first};
        for (const MaskNode *node : parts.chains[slice.chain])
            for (uint32_t t : tokens_in(*node, span)) ranks_.push_back(vocab.rank(t));
    }
    std::sort(ranks_.begin(), ranks_.end());
    ranks_.erase(std::unique(ranks_.begin(), ranks_.end()), ranks_.end());
}

/// Lists the ranks that differ from the base.
SharedMask *MaskCache::gather_many(const MaskParts &parts) {
    const Vocab &vocab = store_.vocab();
    likely_.clear();
    std::fill(mask_.begin(), mask_.end(), 0);
    for (const Span &span : parts.ranks) each_word(span, [&](uint32_t word, uint64_t bits) { mask_[word] |= bits; });
    for (const MaskParts::Run &part : parts.runs) {
        const RankMask *inside = &part.run->inside;
        if (part.most < vocab.longest()) {
            short_ = *inside;
            vocab.keep_short(part.most, short_.data());
            inside = &short_;
        }
        each_word(part.ranks, [&](uint32_t word, uint64_t bits) { mask_[word] |= (*inside)[word] & bits; });
    }
    for (uint32_t t : parts.tokens)
        if (vocab.in_trie(t)) set_rank(mask_, vocab.rank(t));
    for (const MaskParts::Slice &slice : parts.slices)
        for (const MaskNode *node : parts.chains[slice.chain]) {
            add_slice(*node, {vocab.nodes()[slice.nodes.first].first, vocab.nodes()[slice.nodes.last].first});
            if (node->base && std::find(likely_.begin(), likely_.end(), node->base) == likely_.end()) likely_.push_back(node->base);
        }
    return shared_masks_.find(mask_, likely_, ranks_);
}

void MaskCache::add_slice(const MaskNode &node, Span ranks) {
    const Vocab &vocab = store_.vocab();
    const std::span<const uint32_t> tokens = tokens_in(node, ranks);
    if (!node.base) {
        for (uint32_t t : tokens) set_rank(mask_, vocab.rank(t));
        return;
    }
    ranks_.clear();  // what the base has and the node has not stays as it is
    for (uint32_t t : tokens)
        if (has_rank(node.base->ranks, vocab.rank(t)) && !has_rank(mask_, vocab.rank(t))) ranks_.push_back(vocab.rank(t));
    each_word(ranks, [&](uint32_t word, uint64_t bits) { mask_[word] |= node.base->ranks[word] & bits; });
    for (uint32_t t : tokens) set_rank(mask_, vocab.rank(t));
    for (uint32_t r : ranks_) clear_rank(mask_, r);
}

void MaskCache::write(const std::vector<MaskNode *> &nodes, uint32_t *out) const {
    static thread_local std::vector<uint32_t> missing;
    const size_t words = store_.vocab().mask_words();
    const auto bit = [](uint32_t token) { return 1u << (token % 32); };
    const MaskNode *first = nullptr;
    for (const MaskNode *n : nodes)
        if (n->base) {
            first = n;
            break;
        }
    if (first) {
        std::memcpy(out, first->base->ids.data(), words * 4);
        for (uint32_t i = 0; i < first->token_count; ++i) out[first->tokens[i] / 32] ^= bit(first->tokens[i]);
    } else {
        std::memset(out, 0, words * 4);
    }
    for (const MaskNode *n : nodes) {
        if (n == first) continue;
        const std::span<const uint32_t> tokens(n->tokens.get(), n->token_count);
        if (!n->base) {
            for (uint32_t t : tokens) out[t / 32] |= bit(t);
            continue;
        }
        const std::vector<uint32_t> &base = n->base->ids;
        missing.clear();  // what the base has and the node has not stays as it is
        for (uint32_t t : tokens)
            if ((base[t / 32] & bit(t)) && !(out[t / 32] & bit(t))) missing.push_back(t);
        for (size_t i = 0; i < words; ++i) out[i] |= base[i];
        for (uint32_t t : tokens) out[t / 32] |= bit(t);
        for (uint32_t t : missing) out[t / 32] &= ~bit(t);
    }
}

void MaskCache::drop(MaskNode &node) {
    std::vector<MaskNode *> pending{&node};
    while (!pending.empty()) {
        MaskNode *n = pending.back();
        pending.pop_back();
        bytes_ -= n->bytes;
        if (n->base) shared_masks_.release(n->base);
        if (n->below) n->below->each([&](MaskNode &child) { pending.push_back(&child); });
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
    std::vector<std::pair<uint64_t, size_t>> ages;
    for (const auto &base : shared_masks_.all()) base->used = 0;
    for (size_t i = 0; i < all.size(); ++i) {
        ages.emplace_back(all[i]->used, all[i]->bytes);
        if (all[i]->base) all[i]->base->used = std::max(all[i]->base->used, all[i]->used);
        if (all[i]->below) all[i]->below->each([&](MaskNode &child) { all.push_back(&child); });
    }
    for (const auto &base : shared_masks_.all()) ages.emplace_back(base->used, shared_masks_.base_bytes());
    std::sort(ages.begin(), ages.end());
    size_t freed = 0;
    uint64_t oldest = 0;
    for (const auto &[used, size] : ages) {
        if (bytes() - freed <= limit_ / 2) break;
        freed += size;
        oldest = used + 1;
    }
    auto old = [&](MaskNode &node) {
        if (node.used >= oldest) return false;
        drop(node);
        return true;
    };
    for (MaskRoots *r = first_; r; r = r->after) {
        if (r->uncounted && old(*r->uncounted)) {
            r->uncounted.reset();
            r->state.uncounted_mask = nullptr;
        }
        r->counted.erase_if(old);
    }
    gather();
    for (size_t i = 0; i < all.size(); ++i) {
        if (!all[i]->below) continue;
        all[i]->below->erase_if(old);
        all[i]->below->each([&](MaskNode &child) { all.push_back(&child); });
    }
}

}  // namespace dovetail
