#include "walker.h"

#include <algorithm>
#include <bit>

#include "mask.h"

namespace dovetail {

namespace {

constexpr uint64_t kMaxWalkSteps = 40'000'000;
constexpr uint32_t kWorthSharing = 8;    // trie nodes; fewer are walked faster than looked up
constexpr uint32_t kWorthMaking = 256;   // for these a mask is made where none is known
constexpr uint32_t kWorthLeaping = 96;   // for these the runs of a loop are looked up

[[noreturn]] void throw_too_long() {
    throw LimitError("one mask takes more than 40,000,000 steps; simplify the grammar");
}

uint64_t hash_of(const Frame *frame) { return frame ? frame->hash : 0; }

/// Known to do nothing but take bytes; and what follows does not look at the counter either.
bool only_takes_bytes(const DState &d) { return d.expanded && d.plain && !d.counts_tokens; }
bool is_plain(const DState &d) { return only_takes_bytes(d) && !d.counter_live; }
bool is_plain(const Config &c) { return is_plain(*c.d) && c.counter == Counter{}; }

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
    sharing_ = true;
    unlimited_ = kNone;
    chains_.clear();
    ways_.clear();
    reaches_.clear();
}

void Walker::walk_all(const Config &top, MaskParts &out) {
    begin(out);
    levels_[0].tops.push_back({top.d, top.counter, nullptr, nullptr});
    if (only_takes_bytes(*top.d) && leap(0, 0, Config(levels_[0].tops[0]))) return;
    const bool plain = is_plain(top);
    Run run;
    top.d->each_range([&](uint8_t low, uint8_t high, DState *to) {
        for (int b = low; b <= high; ++b) {
            const uint32_t node = vocab_.first_node(static_cast<uint8_t>(b));
            if (node == kNone) continue;
            if (goes_on(run, top.d, node)) {
                share(run.chain, node);
                continue;
            }
            if (!plain || !hand_over_again(levels_[0].tops[0], to, node)) enter(node, 0);
            run = run_;
        }
    });
}

Walker::Arrival &Walker::arrive(DState *state, Counter counter) {
    frames_.rewind(0);
    exits_.clear();
    arrival_.stacks.clear();
    mover_.arrive(state, counter, nullptr, nullptr, arrival_.stacks);
    arrival_.exits = exits_;
    return arrival_;
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
        if (!relaxed && at.byte < 0x80 && is_plain(from.tops[0]))
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
    const auto &nodes = vocab_.nodes();
    const Stacks &stacks = levels_[level];
    const DState *only = stacks.tops.size() == 1 ? stacks.tops[0].d : nullptr;
    if (only && exits.empty() && is_plain(stacks.tops[0])) return plain_children(node, level, Config(stacks.tops[0]));
    if (only && exits.empty() && only_takes_bytes(*only) && leap(node, level, Config(stacks.tops[0]))) return false;
    bool all = true;
    Run run;
    for (uint32_t c = node + 1; c < nodes[node].end; c = nodes[c].end) {
        if (goes_on(run, only, c)) {
            share(run.chain, c);
        } else {
            const auto takes = [&](const Config &top) { return top.d->next(nodes[c].byte) != nullptr; };
            const bool possible = std::any_of(stacks.tops.begin(), stacks.tops.end(), takes);
            const bool whole = possible && enter(c, level);
            run = possible ? run_ : Run{};
            if (whole) continue;
        }
        all = false;
        for (uint32_t exit : exits) out_->rest_of(exit).push_back(c);
    }
    return all;
}

/// The same for a stack that loops on many characters: what they lead to is known, the others are entered.
bool Walker::leap(uint32_t node, size_t level, const Config &top) {
    const auto &nodes = vocab_.nodes();
    if (nodes[node].end - node < kWorthLeaping || (top.d->measured && top.counter.left)) return false;
    const Loops &loops = top.d->owner->loops(*top.d);
    if (loops.ticks || loops.ascii() < kManyChars) return false;
    const Runs &runs = masks_.runs(loops);
    if (!runs.holds(vocab_.path(node))) return false;
    out_->runs.push_back({&runs, {nodes[node + 1].first, nodes[nodes[node].end].first}});
    Run run;
    uint32_t last = kNone;
    const auto end = std::lower_bound(runs.ways.begin(), runs.ways.end(), nodes[node].end);
    for (auto way = std::upper_bound(runs.ways.begin(), runs.ways.end(), node); way != end; ++way) {
        if (!top.d->next(nodes[*way].byte)) continue;
        if (last != kNone && nodes[last].end == *way && vocab_.depth(last) == vocab_.depth(*way) && goes_on(run, top.d, *way)) {
            share(run.chain, *way);
        } else if (is_plain(top) && hand_over_again(top, top.d->next(nodes[*way].byte), *way)) {
            run = run_;
        } else {
            levels_[level].tops.assign(1, top);
            enter(*way, level);
            run = run_;
        }
        last = *way;
    }
    run_.to = nullptr;
    return true;
}

/// The same for one stack that only takes bytes: most of a long walk.
bool Walker::plain_children(uint32_t node, size_t level, const Config &top) {
    const auto &nodes = vocab_.nodes();
    if (leap(node, level, top)) return false;
    bool all = true;
    Run run;
    for (uint32_t c = node + 1; c < nodes[node].end; c = nodes[c].end) {
        const TrieNode &at = nodes[c];
        DState *to = top.d->next(at.byte);
        if (!to) {
            all = false;
            run.to = nullptr;
        } else if (run.to == to && goes_on(run, top.d, c)) {
            share(run.chain, c);
            all = false;
        } else if (hand_over_again(top, to, c)) {
            run = run_;
            all = false;
        } else if (!is_plain(*to)) {
            levels_[level].tops.assign(1, top);
            all = enter(c, level) && all;
            run = run_;
        } else {
            if (++steps_ > kMaxWalkSteps) throw_too_long();
            const Config next{to, {}, top.parent, nullptr};
            run.to = nullptr;
            if (c + 1 == at.end || covers(next, c)) {
                out_->take({at.first, nodes[at.end].first});
            } else if (sharing_ && at.end - c >= kWorthSharing && hand_over(next, c)) {
                run = run_;
                run.to = to;
                all = false;
            } else if (alone_.tops.assign(1, next); reaches(alone_, c)) {
                out_->take({at.first, nodes[at.end].first});
            } else {
                out_->take({at.first, nodes[c + 1].first});
                all = plain_children(c, level + 1, next) && all;
            }
        }
    }
    run_.to = nullptr;
    return all;
}

bool Walker::goes_on(const Run &run, const DState *only, uint32_t node) const {
    if (!run.to || !only) return false;
    const uint8_t byte = vocab_.nodes()[node].byte;
    return only->next(byte) == run.to && run.from->next(byte) == run.at;
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

void Walker::share(uint32_t chain, uint32_t node) {
    const uint32_t end = vocab_.nodes()[node].end;
    std::vector<MaskParts::Slice> &slices = out_->slices;
    if (!slices.empty() && slices.back().chain == chain && slices.back().nodes.last == node) slices.back().nodes.last = end;
    else slices.push_back({chain, {node, end}});
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
