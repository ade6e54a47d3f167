// What counted loops make of the trie, for every count at once.
#include <algorithm>
#include <bit>

#include "mask.h"

namespace dovetail {

namespace {

bool takes_any(const DState &d, const Loops &loops) {
    bool found = false;
    d.each_range([&](uint8_t low, uint8_t high, DState *) {
        for (int b = low; b <= high; ++b) found = found || loops.has(static_cast<uint8_t>(b));
    });
    return found;
}

}  // namespace

size_t LoopProfile::memory() const {
    size_t bytes = sizeof(*this) + inside.size() * 8 + ways.size() * sizeof(Way) + left.items.size() * 6;
    for (const auto &[exit, found] : rest) bytes += sizeof(found) + found.items.size() * 6;
    return bytes;
}

LoopProfile Walker::profile(DState &d) {
    LoopProfile result;
    const Loops &loops = d.owner->loops(d);
    // A loop that may be left for the caller at any point has rests everywhere; it is walked.
    if (d.extra && !d.extra->exits.empty()) return result;
    constexpr int kWorthIt = 10;  // bytes; the few that white space takes are walked faster than described
    if (!loops.ticks || !loops.alone || loops.ascii() < kWorthIt) return result;
    result.usable = true;
    result.sample = static_cast<uint8_t>(loops.low ? std::countr_zero(loops.low) : 64 + std::countr_zero(loops.high));
    result.inside.resize(vocab_.rank_words());
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
        each_word({first, last}, [&](uint32_t word, uint64_t bits) { out.inside[word] |= bits; });
    };
    for (Children child = vocab_.children(node); child.next();) {
        const uint32_t c = child.node;
        const uint8_t next = utf8_next(utf8, child.byte);
        const bool takes = utf8 == 0 ? loops.has(child.byte) : next != kUtf8Bad;
        if (!takes) {
            // Inside a character the loop alone decides, see Automaton::loops.
            const DState *to = utf8 == 0 ? d.next(child.byte) : nullptr;
            // Until the lower bound is met the state cannot leave, but those that follow it can.
            if (to || (utf8 == 0 && !loops.met)) out.ways.push_back({c, chars, to && !to->counter_live && !to->has_steps});
        } else if (next == 0 && within(vocab_.below()[c], nodes[c], loops)) {
            inside(nodes[c].first, nodes[child.end].first);
        } else {
            inside(nodes[c].first, nodes[c + 1].first);
            collect(c, static_cast<uint16_t>(chars + (utf8 == 0)), next, d, loops, out);
        }
    }
}

void Walker::follow_ways(DState &d, LoopProfile &out) {
    MaskParts found;
    begin(found);
    sharing_ = false;  // what is found is sorted by where the loop was left
    levels_[0].tops.push_back({&d, {kUnbounded, 0}, nullptr, nullptr});
    for (const LoopProfile::Way &way : out.ways) {
        if (!way.for_good) continue;
        found.clear();
        enter(way.node, 0);
        for (const Span &span : found.ranks)
            for (uint32_t rank = span.first; rank < span.last; ++rank) out.left.items.push_back(rank);
        for (const MaskParts::Run &run : found.runs)
            each_word(run.ranks, [&](uint32_t word, uint64_t bits) {
                each_rank(word, run.runs->inside[word] & bits, [&](uint32_t rank) { out.left.items.push_back(rank); });
            });
        out.left.chars.resize(out.left.items.size(), way.chars);
        for (const Rest &r : found.rest) {
            auto at = std::find_if(out.rest.begin(), out.rest.end(), [&](const auto &known) { return known.first == r.exit; });
            if (at == out.rest.end()) at = out.rest.insert(out.rest.end(), {r.exit, {}});
            for (const Rest::Node &n : r.nodes) at->second.items.push_back(n.node);
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
        if (!there.ticks || !loops.within(there)) return false;
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
        for (uint32_t rank : profile.left.up_to(most)) out.take({rank, rank + 1});
        for (const auto &[exit, found] : profile.rest) {
            std::vector<Rest::Node> &to = out.rest_of(exit);
            for (const uint32_t node : found.up_to(most)) to.push_back({vocab_.nodes()[node].byte, node});
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
