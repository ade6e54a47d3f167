// The walk over the trie of tokens.

#include "mask/walker.h"

#include <algorithm>
#include <bit>

#include "mask/cache.h"
#include "mask/byte_only.h"

namespace dovetail {

namespace {

constexpr uint64_t kMaxWalkSteps = 40'000'000;
constexpr uint32_t kWorthSharing = 8;  // trie nodes; fewer are walked faster than looked up

[[noreturn]] void throw_too_long() { throw LimitError("one mask takes more than 40,000,000 steps; simplify the grammar"); }

}  // namespace

std::vector<Continuation::Node> &MaskParts::continuation_of(uint32_t exit) {
    for (Continuation &r : rest)
        if (r.exit == exit) return r.nodes;
    rest.push_back({exit, {}});
    return rest.back().nodes;
}

void Walker::bottom(uint32_t exit, const Mark *, Stacks &) {
    if (std::find(exits_.begin(), exits_.end(), exit) == exits_.end()) exits_.push_back(exit);
}

void Walker::begin(MaskParts &out) {
    // The arena is not rewound: tops that came from `arrive` keep their frames.
    out_ = &out;
    levels_[0].clear();
    steps_ = 0;
    chains_.clear();
}

void Walker::walk_all(const Config &top, MaskParts &out) {
    begin(out);
    levels_[0].tops.push_back({top.d, top.counter, nullptr, nullptr});
    children(0, 0, {});
}

Walker::Arrival &Walker::arrive(DState *state, Counter counter) {
    frames_.rewind(0);
    exits_.clear();
    arrival_.stacks.clear();
    mover_.arrive(state, counter, nullptr, nullptr, arrival_.stacks);
    arrival_.exits = exits_;
    return arrival_;
}

void Walker::walk_continuation(const std::vector<Continuation::Node> &from, std::span<const Config> tops, MaskParts &out) {
    begin(out);
    if (has(Shortcut::ByteOnly) && tops.size() == 1 && is_byte_only(tops[0])) {
        for (const auto &[byte, node] : from) {
            DState *to = tops[0].d->next(byte);
            if (to) enter_byte_only(node, 0, tops[0], to);
        }
        return;
    }
    levels_[0].tops.assign(tops.begin(), tops.end());
    bool wanted[256] = {};
    note_bytes(tops, wanted);
    for (const auto &[byte, node] : from)
        if (wanted[byte]) enter(node, 0);
}

/// Takes the edge into `node`; says whether every token at and below it is allowed.
bool Walker::enter(uint32_t node, size_t level) {
    const auto &nodes = vocab_.nodes();
    const TrieNode &at = nodes[node];
    if (++steps_ > kMaxWalkSteps) throw_too_long();
    last_.to = nullptr;
    const size_t frames = frames_.used();
    exits_.clear();
    const Stacks &from = levels_[level];
    Stacks &to = levels_[level + 1];
    mover_.step(from, at.byte, true, to);
    const bool leaf = node + 1 == at.end;
    const bool ends = !exits_.empty() || !std::all_of(to.tops.begin(), to.tops.end(), is_stuck);
    const auto cover = [&](const Config &c) { return covers(c, node); };
    const bool one_to_one = from.tops.size() == 1 && to.tops.size() == 1 && exits_.empty();
    bool whole = false;
    if ((to.tops.empty() && exits_.empty()) || (!ends && leaf)) {
        // Nothing is allowed.
    } else if (!leaf && one_to_one && take_known_suffix(to.tops[0], node)) {
        // Even a small subtree is worth it, because its siblings follow at once.
        last_.to = from.tops[0].d->next(at.byte);
    } else if (leaf || std::any_of(to.tops.begin(), to.tops.end(), cover)) {
        // What other stacks could add below is allowed already.
        out_->take({at.first, nodes[at.end].first});
        whole = true;
    } else {
        const std::vector<uint32_t> exits = exits_;
        if (to.tops.size() > 1) std::erase_if(to.tops, [&](const Config &c) { return take_known_suffix(c, node); });
        if (!to.tops.empty() || !exits.empty()) {
            if (ends) out_->take({at.first, nodes[node + 1].first});
            whole = children(node, level + 1, exits) && ends;
        }
        last_.to = nullptr;
    }
    frames_.rewind(frames);
    return whole;
}

/// Enters every child; a child that is not wholly allowed is left to the callers behind `exits`.
bool Walker::children(uint32_t node, size_t level, const std::vector<uint32_t> &exits) {
    const Stacks &stacks = levels_[level];
    const bool alone = stacks.tops.size() == 1;
    if (exits.empty() && alone && has(Shortcut::ByteOnly) && is_byte_only(stacks.tops[0]))
        return byte_only_children(node, level, Config(stacks.tops[0]));
    if (exits.empty() && skip_run(node, level, stacks.tops)) return false;
    bool all = true;
    KnownSuffix last;
    for (Children c = vocab_.children(node); c.next();) {
        if (alone && goes_with(last, stacks.tops[0].d->next(c.byte), c.byte)) {
            share(last.chain, {c.node, c.end});
        } else {
            const auto takes = [&](const Config &top) { return top.d->next(c.byte) != nullptr; };
            const bool possible = std::any_of(stacks.tops.begin(), stacks.tops.end(), takes);
            const bool whole = possible && enter(c.node, level);
            last = possible ? last_ : KnownSuffix{};
            if (whole) continue;
        }
        all = false;
        for (uint32_t exit : exits) out_->continuation_of(exit).push_back({c.byte, c.node});
    }
    return all;
}

/// As `children` for one stack that only takes bytes: most of a long walk.
bool Walker::byte_only_children(uint32_t node, size_t level, const Config &top) {
    if (skip_run(node, level, {&top, 1})) return false;
    const auto &nodes = vocab_.nodes();
    bool all = true;
    KnownSuffix last;
    const DState::Range *only = !top.d->dense && top.d->ranges == 1 ? top.d->row : nullptr;
    const bool literal = node == 0 && only && only->low == only->high;
    for (Children c = literal ? vocab_.first_byte(only->low) : vocab_.children(node); c.next();) {
        DState *to = top.d->next(c.byte);
        if (!to) {
            all = false;
            last.to = nullptr;
        } else if (c.end == c.node + 1 && only_takes_bytes(*to) && top.counter == Counter{}) {
            out_->take({nodes[c.node].first, nodes[c.end].first});
        } else if (goes_with(last, to, c.byte)) {
            share(last.chain, {c.node, c.end});
            all = false;
        } else {
            all = enter_byte_only(c.node, level, top, to) && all;
            last = last_;
        }
    }
    last_.to = nullptr;
    return all;
}

/// As `enter`, which is for all stacks.
bool Walker::enter_byte_only(uint32_t node, size_t level, const Config &top, DState *to) {
    const Config next = moved(top, to);
    if (!is_byte_only(next)) {
        levels_[level].tops.assign(1, top);
        return enter(node, level);
    }
    if (++steps_ > kMaxWalkSteps) throw_too_long();
    const auto &nodes = vocab_.nodes();
    const TrieNode &at = nodes[node];
    last_.to = nullptr;
    if (node + 1 == at.end || covers(next, node)) {
        out_->take({at.first, nodes[at.end].first});
        return true;
    }
    if (at.end - node >= kWorthSharing && take_known_suffix(next, node)) {
        last_.to = to;
        return false;
    }
    out_->take({at.first, nodes[node + 1].first});
    return byte_only_children(node, level + 1, next);
}

/// Does every path below the node lead from this state back to itself?
bool Walker::covers(const Config &c, uint32_t node) {
    if (!has(Shortcut::WholeSubtree) || !c.d->has_bytes || (c.d->measured && c.counter.left)) return false;
    // Most states do not loop at all: one byte tells before the loop is worked out.
    const uint8_t byte = vocab_.nodes()[node + 1].byte;
    const DState *sample = c.d->next(byte);
    if (!sample || (byte < 0x80 && sample != c.d)) return false;
    return within(vocab_.below()[node], vocab_.nodes()[node], c.d->owner->chars_to(*c.d, c.d));
}

}  // namespace dovetail
