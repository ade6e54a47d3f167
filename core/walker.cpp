#include "walker.h"

#include <algorithm>
#include <bit>

#include "mask.h"

namespace dovetail {

namespace {

constexpr uint64_t kMaxWalkSteps = 40'000'000;
constexpr uint32_t kWorthSharing = 8;    // trie nodes; fewer are walked faster than looked up
constexpr uint32_t kWorthMaking = 256;   // for these a mask is made where none is known
constexpr uint32_t kWorthLeaping = 256;  // for these the runs of a loop are looked up
constexpr int kManyChars = 26;           // in a loop; fewer leave it nearly everywhere

/// Does the subtree below a node hold nothing but what the loop takes?
bool within(const CharSet &below, const TrieNode &at, const CharSet &loops) { return below.within(loops) && (at.utf8_ok & 1); }

bool takes_any(const DState &d, const Loops &loops) {
    bool found = false;
    d.each_range([&](uint8_t low, uint8_t high, DState *) {
        for (int b = low; b <= high; ++b) found = found || loops.has(static_cast<uint8_t>(b));
    });
    return found;
}

[[noreturn]] void throw_too_long() {
    throw LimitError("one mask takes more than 40,000,000 steps; simplify the grammar");
}

uint64_t hash_of(const Frame *frame) { return frame ? frame->hash : 0; }

/// Known to do nothing but take bytes.
bool is_plain(const DState &d) { return d.expanded && d.plain && !d.counter_live && !d.counts_tokens; }

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
    chains_.clear();
    ways_.clear();
    reaches_.clear();
}

void Walker::walk_all(const Config &top, MaskParts &out) {
    begin(out);
    levels_[0].tops.push_back({top.d, top.counter, nullptr, nullptr});
    if (is_plain(*top.d) && leap(0, 0, {top.d, {}, nullptr, nullptr})) return;
    const bool plain = is_plain(*top.d);
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

/// Takes the edge into `node`; says whether every token at and below it is allowed.
bool Walker::enter(uint32_t node, size_t level) {
    const auto &nodes = vocab_.nodes();
    const TrieNode &at = nodes[node];
    if (++steps_ > kMaxWalkSteps) throw_too_long();
    const size_t frames = frames_.used();
    exits_.clear();
    Stacks &to = levels_[level + 1];
    mover_.step(levels_[level], at.byte, true, to);
    run_.to = nullptr;
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
    const Stacks &from = levels_[level];
    if (sharing_ && !leaf && from.tops.size() == 1 && to.tops.size() == 1 && exits_.empty() && hand_over(to.tops[0], node)) {
        // Even a small subtree is worth it, because its siblings follow at once.
        whole = false;
        run_.to = from.tops[0].d->next(at.byte);
        if (at.byte < 0x80 && is_plain(*from.tops[0].d))
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
    if (only && exits.empty() && is_plain(*only)) return plain_children(node, level, Config(stacks.tops[0]));
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
    if (nodes[node].end - node < kWorthLeaping || top.d->counter_live) return false;
    const Loops &loops = top.d->owner->loops(*top.d);
    if (loops.ascii() < kManyChars) return false;
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
        } else if (hand_over_again(top, top.d->next(nodes[*way].byte), *way)) {
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
    if (c.d->has_steps || !c.d->has_bytes) return false;
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
    if (c.d->counter_live || c.d->counts_tokens || !sample->has_bytes || sample->ranges == 1) return false;
    return within(below, at, c.d->owner->wide_loops(*c.d));
}

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
    for (uint32_t c = node + 1; c < nodes[node].end; c = nodes[c].end) {
        const TrieNode &at = nodes[c];
        const uint8_t next = utf8_next(utf8, at.byte);
        const bool takes = utf8 == 0 ? loops.has(at.byte) : next != kUtf8Bad;
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
    sharing_ = false;  // what is found is sorted by where the loop was left
    levels_[0].tops.push_back({&d, {kUnbounded, 0}, nullptr, nullptr});
    for (const LoopProfile::Way &way : out.ways) {
        if (!way.for_good) continue;
        found.clear();
        enter(way.node, 0);
        for (const Span &span : found.ranks)
            for (uint32_t rank = span.first; rank < span.last; ++rank) out.left.items.push_back(rank);
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
