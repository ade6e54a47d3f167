// How far a walk can be sure of stacks that do not come back to themselves, as in a text of counted characters: every
// text over some characters keeps them alive up to some length, so that whole subtrees need no walk.
#include "walker.h"

namespace dovetail {

namespace {

constexpr uint64_t kLongWalk = 200;    // steps; a shorter walk is over before it pays to look ahead
constexpr uint32_t kWorthLooking = 64;  // trie nodes
constexpr int kFewestChars = 24;
constexpr uint32_t kFarthest = 32;  // characters; longer tokens are few
constexpr size_t kMaxSets = 96;     // of stacks on the way

/// The ASCII characters that some stack takes.
CharSet taken(const Stacks &stacks) {
    CharSet found;
    for (const Config &c : stacks.tops) {
        const CharSet one = c.d->ascii();
        found.low |= one.low;
        found.high |= one.high;
    }
    return found;
}

CharSet common(const CharSet &a, const CharSet &b) { return {a.low & b.low, a.high & b.high, 0}; }

/// The characters of `chars` by where they lead the stacks.
std::vector<CharSet> alike(const Stacks &stacks, const CharSet &chars) {
    std::vector<CharSet> found;
    std::vector<uint8_t> samples;  // of each
    const auto same = [&](uint8_t a, uint8_t b) {
        return std::all_of(stacks.tops.begin(), stacks.tops.end(), [&](const Config &c) { return c.d->next(a) == c.d->next(b); });
    };
    size_t last = 0;
    for (uint8_t b = 0; b < 128; ++b) {
        if (!chars.has(b)) continue;
        if (found.empty() || !same(samples[last], b)) {
            for (last = 0; last < found.size() && !same(samples[last], b);) ++last;
            if (last == found.size()) {
                found.emplace_back();
                samples.push_back(b);
            }
        }
        found[last].add(b);
    }
    return found;
}

}  // namespace

Walker::Spots Walker::spots(const Stacks &stacks) {
    Spots found;
    const auto spot = [](const Config &c) { return Spot{c.d, c.counter, c.parent ? c.parent->hash : 0}; };
    found.first = spot(stacks.tops[0]);
    for (size_t i = 1; i < stacks.tops.size(); ++i) found.others.push_back(spot(stacks.tops[i]));
    return found;
}

size_t Walker::SpotsHash::operator()(const Spots &spots) const {
    const auto hash = [](const Spot &s) { return mix(s.d->id(), mix(pack(s.counter), s.callers)); };
    uint64_t all = hash(spots.first);
    for (const Spot &s : spots.others) all = mix(all, hash(s));
    return all;
}

/// Whether nothing below a node can leave these stacks without a way on.
bool Walker::reaches(const Stacks &stacks, uint32_t node) {
    const TrieNode &at = vocab_.nodes()[node];
    const CharSet &below = vocab_.below()[node];
    if (steps_ < kLongWalk || stacks.tops.empty() || below.leads || !(at.utf8_ok & 1)) return false;
    const auto known = reaches_.find(spots(stacks));
    if (known == reaches_.end() && at.end - node < kWorthLooking) return false;
    const Reach &reach = known == reaches_.end() ? look_ahead(stacks) : known->second;
    return reach.length >= at.height && below.within(reach.chars);
}

const Walker::Reach &Walker::look_ahead(const Stacks &stacks) {
    const std::vector<uint32_t> exits = std::move(exits_);
    const size_t frames = frames_.used();
    std::vector<Stacks> layer{stacks}, next;
    std::vector<std::pair<Spots, uint32_t>> seen{{spots(stacks), 0}};  // with the length of the way
    Reach found;
    CharSet chars = taken(stacks);
    while (found.length < kFarthest && seen.size() <= kMaxSets) {
        next.clear();
        for (const Stacks &from : layer) look_on(from, found.length + 1, chars, seen, next);
        if (chars.ascii() < kFewestChars) break;
        found.chars = chars;
        found.length = next.empty() ? UINT32_MAX : found.length + 1;
        std::swap(layer, next);
        if (found.length == UINT32_MAX) break;
    }
    frames_.rewind(frames);
    exits_ = exits;
    // What is left from farther on is shorter, and soon too short to be of use.
    for (auto &[spots, way] : seen) {
        const uint32_t left = found.length == UINT32_MAX ? UINT32_MAX : found.length - std::min(way, found.length);
        if (way == 0 || left > found.length / 2) reaches_.emplace(std::move(spots), Reach{found.chars, left});
    }
    return reaches_.find(this->spots(stacks))->second;
}

/// Adds where all of `chars` lead, without the characters after which few of the others could follow.
void Walker::look_on(const Stacks &from, uint32_t way, CharSet &chars,
                     std::vector<std::pair<Spots, uint32_t>> &seen, std::vector<Stacks> &next) {
    Stacks to;
    for (const CharSet &group : alike(from, chars)) {
        const CharSet still = common(group, chars);  // without those given up by now
        if (!still.ascii()) continue;
        uint8_t sample = 0;
        while (!still.has(sample)) ++sample;
        ++steps_;
        mover_.step(from, sample, true, to);
        const CharSet left = to.tops.empty() ? CharSet{} : common(chars, taken(to));
        const bool counts_tokens = std::any_of(to.tops.begin(), to.tops.end(), [](const Config &c) { return c.d->counts_tokens; });
        if (counts_tokens || left.ascii() * 2 < chars.ascii()) {
            chars = common(chars, {~group.low, ~group.high, 0});
            continue;
        }
        chars = left;
        Spots key = spots(to);
        if (std::any_of(seen.begin(), seen.end(), [&](const auto &s) { return s.first == key; })) continue;
        seen.emplace_back(std::move(key), way);
        next.push_back(to);
    }
}

}  // namespace dovetail
