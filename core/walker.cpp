#include "walker.h"

#include <algorithm>
#include <bit>

namespace dovetail {

namespace {

constexpr uint64_t kMaxWalkSteps = 40'000'000;

/// Does the subtree below a node hold nothing but what the loop takes?
bool within(const SubtreeBytes &below, const TrieNode &at, const Loops &loops) {
    if ((below.low & ~loops.low) || (below.high & ~loops.high)) return false;
    return !below.other || (loops.others && (at.utf8_ok & 1));
}

bool loops_on(const Loops &loops, uint8_t byte) {
    return (byte < 64 ? loops.low >> byte : loops.high >> (byte - 64)) & 1;
}

bool takes_any(const DState &d, const Loops &loops) {
    bool found = false;
    d.each_range([&](uint8_t low, uint8_t high, DState *) {
        for (int b = low; b <= high; ++b)
            found = found || (b < 128 ? loops_on(loops, static_cast<uint8_t>(b)) : loops.others);
    });
    return found;
}

}  // namespace

std::vector<uint32_t> &MaskParts::rest_of(uint32_t exit) {
    for (Rest &r : rest)
        if (r.exit == exit) return r.nodes;
    rest.push_back({exit, {}});
    return rest.back().nodes;
}

void MaskParts::add_rest(const std::vector<Rest> &more) {
    for (const Rest &r : more) {
        std::vector<uint32_t> &to = rest_of(r.exit);
        to.insert(to.end(), r.nodes.begin(), r.nodes.end());
    }
}

void Walker::bottom(uint32_t exit, const Mark *, Stacks &) {
    if (std::find(exits_.begin(), exits_.end(), exit) == exits_.end()) exits_.push_back(exit);
}

void Walker::begin(MaskParts &out) {
    // The arena is not rewound: tops that came from `arrive` keep their frames.
    out_ = &out;
    levels_[0].clear();
    steps_ = 0;
}

void Walker::walk_all(const Config &top, MaskParts &out) {
    begin(out);
    levels_[0].tops.push_back({top.d, top.counter, nullptr, nullptr});
    top.d->each_range([&](uint8_t low, uint8_t high, DState *) {
        for (int b = low; b <= high; ++b) {
            const uint32_t node = vocab_.first_node(static_cast<uint8_t>(b));
            if (node != kNone) enter(node, 0);
        }
    });
}

void Walker::arrive(DState *state, Counter counter, Stacks &out, std::vector<uint32_t> &exits) {
    frames_.rewind(0);
    exits_.clear();
    out.clear();
    mover_.arrive(state, counter, nullptr, nullptr, out);
    exits = exits_;
}

void Walker::walk_rest(const std::vector<uint32_t> &from, std::span<const Config> tops, MaskParts &out) {
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

void Walker::take(uint32_t first, uint32_t last) {
    out_->tokens.insert(out_->tokens.end(), vocab_.order().begin() + first, vocab_.order().begin() + last);
}

/// Takes the edge into `node`; says whether every token at and below it is allowed.
bool Walker::enter(uint32_t node, size_t level) {
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
    const bool ends = !exits_.empty() || !std::all_of(to.tops.begin(), to.tops.end(), is_stuck);
    if (!ends && leaf) {
        frames_.rewind(frames);
        return false;
    }
    if (leaf || std::any_of(to.tops.begin(), to.tops.end(), [&](const Config &c) { return covers(c, node); })) {
        // What other stacks could add below is allowed already.
        take(at.first, nodes[at.end].first);
    } else {
        if (ends) take(at.first, nodes[node + 1].first);
        const std::vector<uint32_t> exits = exits_;
        whole = children(node, level + 1, exits) && ends;
    }
    frames_.rewind(frames);
    return whole;
}

/// Enters every child; a child that is not wholly allowed is left to the callers behind `exits`.
bool Walker::children(uint32_t node, size_t level, const std::vector<uint32_t> &exits) {
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
bool Walker::covers(const Config &c, uint32_t node) {
    if (c.d->has_steps || !c.d->has_bytes) return false;
    const TrieNode &at = vocab_.nodes()[node];
    // Most states do not loop at all: one byte tells before the loops are worked out.
    const uint8_t byte = vocab_.nodes()[node + 1].byte;
    const DState *sample = c.d->next(byte);
    if (!sample || (sample != c.d && !sample->has_steps && byte < 0x80)) return false;
    const Loops &loops = c.d->owner->loops(*c.d);
    if (!within(vocab_.below()[node], at, loops)) return false;
    if (!loops.ticks) return true;
    return c.counter.left > at.height && (loops.crosses || c.counter.need > at.height + 1u);
}

size_t LoopProfile::memory() const {
    size_t bytes = sizeof(*this) + inside.size() * 4 + ways.size() * sizeof(Way) + left.items.size() * 6;
    for (const auto &[exit, found] : rest) bytes += sizeof(found) + found.items.size() * 6;
    return bytes;
}

LoopProfile Walker::profile(DState &d) {
    LoopProfile result;
    const Loops &loops = d.owner->loops(d);
    // A loop that may be left for the caller at any point has rests everywhere; it is walked.
    if (d.extra && !d.extra->exits.empty()) return result;
    constexpr int kWorthIt = 10;  // bytes; the few that white space takes are walked faster than described
    if (!loops.ticks || std::popcount(loops.low) + std::popcount(loops.high) < kWorthIt) return result;
    result.usable = true;
    result.sample = static_cast<uint8_t>(loops.low ? std::countr_zero(loops.low) : 64 + std::countr_zero(loops.high));
    result.inside.resize(vocab_.mask_words());
    collect(0, 0, 0, d, loops, result);
    std::stable_sort(result.ways.begin(), result.ways.end(), [](const auto &a, const auto &b) { return a.chars < b.chars; });
    follow_ways(d, result);
    return result;
}

/// Sorts what is below a node, which the loop has taken, into what stays inside and what leaves.
void Walker::collect(uint32_t node, uint16_t chars, uint8_t utf8, const DState &d, const Loops &loops,
                     LoopProfile &out) const {
    const auto &nodes = vocab_.nodes();
    auto inside = [&](uint32_t first, uint32_t last) {
        for (uint32_t rank = first; rank < last; ++rank) {
            const uint32_t token = vocab_.order()[rank];
            out.inside[token / 32] |= 1u << (token % 32);
        }
    };
    for (uint32_t c = node + 1; c < nodes[node].end; c = nodes[c].end) {
        const TrieNode &at = nodes[c];
        const uint8_t next = utf8_next(utf8, at.byte);
        const bool takes = at.byte < 0x80 && utf8 == 0 ? loops_on(loops, at.byte) : loops.others && next != kUtf8Bad;
        if (!takes) {
            // Inside a character the loop alone decides, see Automaton::loops.
            const DState *to = utf8 == 0 ? d.next(at.byte) : nullptr;
            // Until the lower bound is met the state cannot leave, but those that follow it can.
            if (to || (utf8 == 0 && !loops.met)) out.ways.push_back({c, chars, to && !to->counter_live && !to->has_steps});
        } else if (next == 0 && within(vocab_.below()[c], at, loops)) {
            inside(at.first, nodes[at.end].first);
        } else {
            inside(at.first, nodes[c + 1].first);
            collect(c, static_cast<uint16_t>(chars + (utf8 == 0)), next, d, loops, out);
        }
    }
}

void Walker::follow_ways(DState &d, LoopProfile &out) {
    MaskParts found;
    begin(found);
    levels_[0].tops.push_back({&d, {kUnbounded, 0}, nullptr, nullptr});
    for (const LoopProfile::Way &way : out.ways) {
        if (!way.for_good) continue;
        found.clear();
        enter(way.node, 0);
        out.left.items.insert(out.left.items.end(), found.tokens.begin(), found.tokens.end());
        out.left.chars.resize(out.left.items.size(), way.chars);
        for (const Rest &r : found.rest) {
            auto at = std::find_if(out.rest.begin(), out.rest.end(), [&](const auto &known) { return known.first == r.exit; });
            if (at == out.rest.end()) at = out.rest.insert(out.rest.end(), {r.exit, {}});
            at->second.items.insert(at->second.items.end(), r.nodes.begin(), r.nodes.end());
            at->second.chars.resize(at->second.items.size(), way.chars);
        }
    }
}

/// stages[k]: after k repetitions. Every looping byte leads alike, so one of them stands for all; false where it does not.
bool Walker::find_stages(const Config &top, const LoopProfile &profile, std::vector<std::vector<Config>> &stages) {
    const Loops &loops = top.d->owner->loops(*top.d);
    stages.push_back({{top.d, top.counter, nullptr, nullptr}});
    const size_t limit = std::min<size_t>(top.counter.left, vocab_.longest()) + 1;
    for (size_t k = 0; k < limit; ++k) {
        levels_[0].tops = stages[k];
        exits_.clear();
        mover_.step(levels_[0], profile.sample, true, levels_[1]);
        if (!exits_.empty()) return false;
        const std::vector<Config> &now = stages.emplace_back(levels_[1].tops);
        if (k == top.counter.left) {
            // Outside the loop nothing may take its bytes, or longer tokens would be allowed too.
            if (std::any_of(now.begin(), now.end(), [&](const Config &c) { return takes_any(*c.d, loops); })) return false;
            continue;
        }
        if (now.size() != 1) return false;
        const Loops &there = now[0].d->owner->loops(*now[0].d);
        if (!there.ticks || (loops.low & ~there.low) || (loops.high & ~there.high) || (loops.others && !there.others))
            return false;
    }
    return true;
}

bool Walker::walk_loop(const Config &top, const LoopProfile &profile, MaskParts &out) {
    begin(out);
    std::vector<std::vector<Config>> stages;
    if (!find_stages(top, profile, stages)) return false;
    const uint32_t most = static_cast<uint32_t>(stages.size() - 1);
    out.dense = profile.inside;
    vocab_.keep_short(most, out.dense.data());
    const bool may_leave = top.d->owner->loops(*top.d).met;
    if (may_leave) {
        const std::span<const uint32_t> tokens = profile.left.up_to(most);
        out.tokens.insert(out.tokens.end(), tokens.begin(), tokens.end());
        for (const auto &[exit, found] : profile.rest) {
            const std::span<const uint32_t> nodes = found.up_to(most);
            out.rest_of(exit).assign(nodes.begin(), nodes.end());
        }
    }
    for (const LoopProfile::Way &way : profile.ways) {
        if (way.chars > most) break;
        if (way.for_good && may_leave) continue;
        levels_[0].tops = stages[way.chars];
        if (!levels_[0].tops.empty()) enter(way.node, 0);
    }
    return true;
}

}  // namespace dovetail
