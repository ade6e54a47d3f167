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
    return c.counter.left > at.height && (c.counter.need == 0 || c.counter.need > at.height + 1u);
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
    collect(0, 0, 0, loops, result);
    std::stable_sort(result.ways.begin(), result.ways.end(), [](const auto &a, const auto &b) { return a.chars < b.chars; });
    return result;
}

/// Sorts what is below a node, which the loop has taken, into what stays inside and what leaves.
void Walker::collect(uint32_t node, uint16_t chars, uint8_t utf8, const Loops &loops, LoopProfile &out) const {
    const auto &nodes = vocab_.nodes();
    auto inside = [&](uint32_t first, uint32_t last) {
        if (!out.inside.empty() && out.inside.back().second == first) out.inside.back().second = last;
        else if (first != last) out.inside.emplace_back(first, last);
    };
    for (uint32_t c = node + 1; c < nodes[node].end; c = nodes[c].end) {
        const TrieNode &at = nodes[c];
        const uint8_t next = utf8_next(utf8, at.byte);
        const bool takes = at.byte < 0x80 && utf8 == 0 ? loops_on(loops, at.byte) : loops.others && next != kUtf8Bad;
        if (!takes) {
            // Inside a character the loop alone decides, see Automaton::loops.
            if (utf8 == 0) out.ways.push_back({c, chars});
            continue;
        }
        const auto taken = static_cast<uint16_t>(chars + (utf8 == 0));
        if (next == 0 && within(vocab_.below()[c], at, loops)) {
            inside(at.first, nodes[at.end].first);
        } else {
            inside(at.first, nodes[c + 1].first);
            collect(c, taken, next, loops, out);
        }
    }
}

bool Walker::walk_loop(const Config &top, const LoopProfile &profile, MaskParts &out) {
    const Loops &loops = top.d->owner->loops(*top.d);
    // stages[k]: after k repetitions; every looping byte leads alike, so one of them stands for all.
    std::vector<std::vector<Config>> stages{{{top.d, top.counter, nullptr, nullptr}}};
    const size_t last = profile.ways.empty() ? 0 : profile.ways.back().chars;
    const size_t limit = std::min<size_t>(top.counter.left, vocab_.longest()) + 1;
    begin(out);
    for (size_t k = 0; k < std::max(last, limit) && k < limit; ++k) {
        levels_[0].tops = stages[k];
        exits_.clear();
        mover_.step(levels_[0], profile.sample, true, levels_[1]);
        if (!exits_.empty()) return false;
        stages.push_back(levels_[1].tops);
        // Inside the loop there is one state, which takes at least the same bytes; outside, none that takes them.
        const bool done = k == top.counter.left;
        for (const Config &c : stages.back()) {
            if (done) {
                if (takes_any(*c.d, loops)) return false;
                continue;
            }
            const Loops &now = c.d->owner->loops(*c.d);
            if (stages.back().size() != 1 || !now.ticks || (loops.low & ~now.low) || (loops.high & ~now.high) ||
                (loops.others && !now.others))
                return false;
        }
        if (stages.back().empty() && !done) return false;
    }
    const auto &order = vocab_.order();
    for (const auto &[first, end] : profile.inside)
        for (uint32_t rank = first; rank < end; ++rank)
            if (vocab_.chars(order[rank]) <= limit) out.tokens.push_back(order[rank]);
    for (const LoopProfile::Way &way : profile.ways) {
        if (way.chars >= stages.size()) break;
        levels_[0].tops = stages[way.chars];
        if (!levels_[0].tops.empty()) enter(way.node, 0);
    }
    return true;
}

}  // namespace dovetail
