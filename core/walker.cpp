#include "walker.h"

#include <algorithm>
#include <bit>

#include "mask.h"
#include "plain.h"

namespace dovetail {

namespace {

constexpr uint64_t kMaxWalkSteps = 40'000'000;
constexpr uint32_t kWorthSharing = 8;    // trie nodes; fewer are walked faster than looked up
constexpr uint32_t kWorthMaking = 256;   // for these a mask is made where none is known

[[noreturn]] void throw_too_long() {
    throw LimitError("one mask takes more than 40,000,000 steps; simplify the grammar");
}

uint64_t hash_of(const Frame *frame) { return frame ? frame->hash : 0; }

}  // namespace

std::vector<Rest::Node> &MaskParts::rest_of(uint32_t exit) {
    for (Rest &r : rest)
        if (r.exit == exit) return r.nodes;
    rest.push_back({exit, {}});
    return rest.back().nodes;
}

void MaskParts::add_rest(const std::vector<Rest> &more) {
    for (const Rest &r : more) {
        std::vector<Rest::Node> &to = rest_of(r.exit);
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
    sharing_ = true;
    unlimited_ = kNone;
    chains_.clear();
    ways_.clear();
    reaches_.clear();
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

void Walker::walk_rest(const std::vector<Rest::Node> &from, std::span<const Config> tops, MaskParts &out) {
    begin(out);
    if (tops.size() == 1 && is_plain(tops[0])) {
        for (const auto &[byte, node] : from) {
            DState *to = tops[0].d->next(byte);
            if (to) plain_child(node, 0, tops[0], to);
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
    run_.to = nullptr;
    if (unlimited_ != kNone && is_within_limits(node)) {
        share(unlimited_, node);
        return false;
    }
    const size_t frames = frames_.used();
    exits_.clear();
    Stacks &to = levels_[level + 1];
    mover_.step(levels_[level], at.byte, true, to);
    if (to.tops.empty() && exits_.empty()) {
        frames_.rewind(frames);
        return false;
    }
    bool relaxed = false;
    for (Config &c : to.tops)
        if (c.d->measured && c.counter.left) relaxed = relax(c, node) || relaxed;
    bool whole = true;
    const bool leaf = node + 1 == at.end;
    const bool ends = !exits_.empty() || !std::all_of(to.tops.begin(), to.tops.end(), is_stuck);
    if (!ends && leaf) {
        frames_.rewind(frames);
        return false;
    }
    const Stacks &from = levels_[level];
    if (sharing_ && !leaf && from.tops.size() == 1 && to.tops.size() == 1 && exits_.empty() && hand_over(to.tops[0], node)) {
        // Even a small subtree is worth it, because its siblings follow at once.
        whole = false;
        // Siblings may be higher, and come to the limits.
        if (!relaxed) run_.to = from.tops[0].d->next(at.byte);
        if (!relaxed && at.byte < 0x80 && is_plain(from.tops[0]) && from.tops[0].counter == Counter{})
            ways_.push_back({run_.to, hash_of(from.tops[0].parent), run_.home, run_.at, run_.chain});
    } else if (sharing_ && !leaf && from.tops.size() == 1 && exits_.empty() && to.tops[0].d->owner != from.tops[0].d->owner && join(to, node)) {
        whole = false;
    } else if (leaf || std::any_of(to.tops.begin(), to.tops.end(), [&](const Config &c) { return covers(c, node); }) ||
               (ends && reaches(to, node))) {
        // What other stacks could add below is allowed already.
        out_->take({at.first, nodes[at.end].first});
    } else {
        const std::vector<uint32_t> exits = exits_;
        if (sharing_ && to.tops.size() > 1) std::erase_if(to.tops, [&](const Config &c) { return hand_over(c, node); });
        whole = false;
        if (!to.tops.empty() || !exits.empty()) {
            if (ends) out_->take({at.first, nodes[node + 1].first});
            whole = children(node, level + 1, exits) && ends;
        }
        run_.to = nullptr;
    }
    frames_.rewind(frames);
    return whole;
}

/// Enters every child; a child that is not wholly allowed is left to the callers behind `exits`.
bool Walker::children(uint32_t node, size_t level, const std::vector<uint32_t> &exits) {
    const Stacks &stacks = levels_[level];
    const DState *only = stacks.tops.size() == 1 ? stacks.tops[0].d : nullptr;
    const bool limited = unlimited_ != kNone && only && !(stacks.tops[0].counter == Counter{});
    if (only && exits.empty() && is_plain(stacks.tops[0]) && !limited) return plain_children(node, level, Config(stacks.tops[0]));
    if (exits.empty() && leap(node, level, stacks.tops)) return false;
    bool all = true;
    Run run;
    for (Children c = vocab_.children(node); c.next();) {
        if (only && goes_on(run, only->next(c.byte), c.byte)) {
            share(run.chain, {c.node, c.end});
        } else {
            const auto takes = [&](const Config &top) { return top.d->next(c.byte) != nullptr; };
            const bool possible = std::any_of(stacks.tops.begin(), stacks.tops.end(), takes);
            const bool whole = possible && enter(c.node, level);
            run = possible ? run_ : Run{};
            if (whole) continue;
        }
        all = false;
        for (uint32_t exit : exits) out_->rest_of(exit).push_back({c.byte, c.node});
    }
    return all;
}

/// As `children` for one stack that only takes bytes: most of a long walk.
bool Walker::plain_children(uint32_t node, size_t level, const Config &top) {
    if (leap(node, level, {&top, 1})) return false;
    const auto &nodes = vocab_.nodes();
    bool all = true;
    Run run;
    for (Children c = vocab_.children(node); c.next();) {
        DState *to = top.d->next(c.byte);
        if (!to) {
            all = false;
            run.to = nullptr;
        } else if (c.end == c.node + 1 && only_takes_bytes(*to) && top.counter == Counter{}) {
            out_->take({nodes[c.node].first, nodes[c.end].first});
        } else if (goes_on(run, to, c.byte)) {
            share(run.chain, {c.node, c.end});
            all = false;
        } else {
            all = plain_child(c.node, level, top, to) && all;
            run = run_;
        }
    }
    run_.to = nullptr;
    return all;
}

/// As `enter`, which is for all stacks.
bool Walker::plain_child(uint32_t node, size_t level, const Config &top, DState *to) {
    if (hand_over_again(top, to, node)) return false;
    const Config next = moved(top, to);
    if (!is_plain(next)) {
        levels_[level].tops.assign(1, top);
        return enter(node, level);
    }
    if (++steps_ > kMaxWalkSteps) throw_too_long();
    const auto &nodes = vocab_.nodes();
    const TrieNode &at = nodes[node];
    run_.to = nullptr;
    const bool leaf = node + 1 == at.end;
    // Behind a call even a small subtree is worth it, because its siblings follow at once.
    if (sharing_ && !leaf && next.d->owner != top.d->owner && hand_over(next, node)) {
        run_.to = to;
        if (at.byte < 0x80 && top.counter == Counter{}) ways_.push_back({to, hash_of(top.parent), run_.home, run_.at, run_.chain});
        return false;
    }
    if (leaf || covers(next, node)) {
        out_->take({at.first, nodes[at.end].first});
        return true;
    }
    if (sharing_ && at.end - node >= kWorthSharing && hand_over(next, node)) {
        run_.to = to;
        return false;
    }
    if (at.end - node >= kWorthSharing && (alone_.tops.assign(1, next), reaches(alone_, node))) {
        out_->take({at.first, nodes[at.end].first});
        return true;
    }
    out_->take({at.first, nodes[node + 1].first});
    return plain_children(node, level + 1, next);
}

bool Walker::goes_on(const Run &run, const DState *to, uint8_t byte) {
    return run.to && run.to == to && run.from->next(byte) == run.at;
}

/// Leaves everything at and below a node to masks that are known, or says that it cannot.
///
/// Where the mask of another state came to this one by the same bytes, the two allow the same from here on. So a walk
/// that has come to the inside of a string by way of a key is over.
bool Walker::hand_over(const Config &c, uint32_t node) {
    const auto &nodes = vocab_.nodes();
    const uint32_t size = nodes[node].end - node;
    if (!(c.counter == Counter{}) || c.d->counts_tokens) return false;
    DState *state = c.d;
    const Lift *through = nullptr;
    if (nodes[node].byte >= 0x80 && c.d->plain) {
        // Inside a character that is followed by a call: the callee may have taken the whole of it.
        const Lift *lift = c.d->extra ? c.d->extra->lift.get() : nullptr;
        if (!lift || lift->may_try()) lift = &c.d->owner->lift(*c.d, vocab_.path(node));
        if (lift->state) {
            state = lift->state;
            through = lift;
        }
    }
    DState *home = state->owner->home();
    if (!home || !home->plain_mask) return false;
    const std::string_view path = vocab_.path(node);
    DState *from = home->follow(path.substr(0, path.size() - 1));
    if (!from || from->follow(path.substr(path.size() - 1)) != state) return false;
    const uint32_t chain = chain_of(*home, through, c.parent, size >= kWorthMaking);
    if (chain == kNone) return false;
    share(chain, node);
    run_ = {nullptr, from, state, home, chain};
    return true;
}

/// The same for a byte that leads a plain stack to where another byte has led it.
bool Walker::hand_over_again(const Config &top, const DState *to, uint32_t node) {
    if (!(top.counter == Counter{}) && (!only_takes_bytes(*to) || to->keeps_counter())) return false;
    for (const Way &way : ways_) {
        if (way.to != to || way.callers != hash_of(top.parent)) continue;
        const std::string_view path = vocab_.path(node);
        const DState *from = way.home->follow(path.substr(0, path.size() - 1));
        if (!from || from->next(vocab_.nodes()[node].byte) != way.at) continue;
        share(way.chain, node);
        run_ = {to, from, way.at, way.home, way.chain};
        return true;
    }
    return false;
}

/// The same where a call has led elsewhere, as behind the end of a string: known masks may have come to the same stacks.
bool Walker::join(const Stacks &stacks, uint32_t node) {
    if (vocab_.nodes()[node].end - node < kWorthSharing) return false;
    for (const Chain &chain : chains_) {
        if (chain.index == kNone || chain.lift) continue;
        const size_t frames = frames_.used();
        Frame *parent = nullptr;
        for (auto f = chain.callers.rbegin(); f != chain.callers.rend(); ++f)
            parent = frames_.make(make_frame(parent, f->site, f->counter));
        Stacks *at = &joined_[0], *next = &joined_[1];
        at->tops.assign(1, {chain.home, {}, parent, nullptr});
        for (const char byte : vocab_.path(node)) {
            mover_.step(*at, static_cast<uint8_t>(byte), true, *next);
            std::swap(at, next);
        }
        const bool same = exits_.empty() && std::equal(at->tops.begin(), at->tops.end(), stacks.tops.begin(), stacks.tops.end(),
            [](const Config &a, const Config &b) { return a.d == b.d && a.counter == b.counter && same_stack(a.parent, b.parent); });
        exits_.clear();
        frames_.rewind(frames);
        if (same) {
            share(chain.index, node);
            return true;
        }
    }
    return false;
}

uint32_t Walker::chain_of(DState &home, const Lift *lift, const Frame *parent, bool large) {
    const auto same = [&](const Chain &known) {
        if (known.home != &home || (known.lift ? !lift || known.lift->sites != lift->sites : lift != nullptr)) return false;
        size_t i = 0;
        for (const Frame *f = parent; f; f = f->parent, ++i) {
            if (i == known.callers.size()) return false;
            if (f->site != known.callers[i].site || !(f->counter == known.callers[i].counter)) return false;
        }
        return i == known.callers.size();
    };
    auto chain = std::find_if(chains_.begin(), chains_.end(), same);
    if (chain != chains_.end() && (chain->index != kNone || !large || chain->tried)) return chain->index;
    if (chain == chains_.end()) {
        chain = chains_.insert(chains_.end(), Chain{&home, lift, {}, kNone, false});
        for (const Frame *f = parent; f; f = f->parent) chain->callers.push_back(*f);
    }
    chain->tried = large;
    std::vector<MaskNode *> found;
    if (!masks_.chain(home, lift, chain->callers, large, found)) return kNone;
    chain->index = static_cast<uint32_t>(out_->chains.size());
    out_->chains.push_back(std::move(found));
    return chain->index;
}

void Walker::share(uint32_t chain, Span nodes) {
    std::vector<MaskParts::Slice> &slices = out_->slices;
    if (!slices.empty() && slices.back().chain == chain && slices.back().nodes.last == nodes.first) slices.back().nodes.last = nodes.last;
    else slices.push_back({chain, nodes});
}

/// Does every path below the node lead from this state back to itself?
bool Walker::covers(const Config &c, uint32_t node) {
    if (c.d->has_steps || !c.d->has_bytes || (c.d->measured && c.counter.left)) return false;
    const TrieNode &at = vocab_.nodes()[node];
    // Most states do not loop at all: one byte tells before the loops are worked out.
    const uint8_t byte = vocab_.nodes()[node + 1].byte;
    const DState *sample = c.d->next(byte);
    if (!sample) return false;
    const CharSet &below = vocab_.below()[node];
    if (sample == c.d || sample->has_steps || byte >= 0x80) {
        const Loops &loops = c.d->owner->loops(*c.d);
        if (loops.ticks) {
            return within(below, at, loops) && c.counter.left > at.height && (loops.alone || c.counter.need == 0) &&
                   (loops.crosses || c.counter.need > at.height + 1u);
        }
        if (within(below, at, loops)) return true;
    }
    if (c.d->counter_live || c.d->counts_tokens || !sample->has_bytes || (sample->ranges == 1 && !sample->dense)) return false;
    return within(below, at, c.d->owner->wide_loops(*c.d));
}

}  // namespace dovetail
