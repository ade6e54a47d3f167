// Walks with limits: a counter differs from one without limits only where a token can come to its end.
#include <algorithm>

#include "mask.h"

namespace dovetail {

namespace {

constexpr uint32_t kFewLeft = 16;  // characters; where fewer may come, most tokens come near the limit

}  // namespace

void Walker::walk_limited(const Config &top, MaskNode &all, MaskParts &out) {
    begin(out);
    unlimited_ = static_cast<uint32_t>(out.chains.size());
    out.chains.push_back({&all});
    // No token makes more steps than it has bytes.
    const uint32_t spare = top.d->measured ? top.d->owner->room() + 1 : 2;
    safe_bytes_ = top.counter.left > spare ? top.counter.left - spare : 0;
    ending_ = top.d->measured && top.counter.need > 0 ? top.d->owner->end() : -1;
    if (leap_measured(top)) return;
    levels_[0].tops.push_back({top.d, top.counter, nullptr, nullptr});
    for (Children c = vocab_.children(0); c.next();)
        if (top.d->next(c.byte)) enter(c.node, 0);
}

/// Near the limit, for a state that loops on many characters: tokens of these are allowed by their length.
bool Walker::leap_measured(const Config &top) {
    if (!top.d->between || top.counter.left > kFewLeft + top.d->owner->room()) return false;
    const Loops &loops = top.d->owner->loops(*top.d);
    if (loops.ascii() < kManyChars) return false;
    const HoledSet whole{static_cast<const CharSet &>(loops), 0, {}};  // ways inside a character are not counted below
    const Runs &runs = masks_.runs(whole, false);
    const uint32_t most = top.counter.left - 1 - top.d->fewest;
    out_->dense = runs.inside;
    vocab_.keep_short(most, out_->dense.data());
    for (const uint32_t way : runs.ways) {
        if (!top.d->next(vocab_.nodes()[way].byte)) continue;
        const std::string_view before = vocab_.path(way).substr(0, vocab_.nodes()[way].depth - 1);
        const auto chars = static_cast<uint32_t>(count_chars(before));
        if (chars > most) continue;
        const Counter left{top.counter.left - chars, top.counter.need - std::min(chars, top.counter.need)};
        levels_[0].tops.assign(1, {top.d, left, nullptr, nullptr});
        enter(way, 0);
    }
    return true;
}

/// Forgets the measure of a text where nothing below the node can come to its limits.
bool Walker::relax(Config &c, uint32_t node) const {
    if (c.counter.need > 0 && vocab_.below()[node].has(c.d->owner->end())) return false;
    if (c.counter.left <= vocab_.nodes()[node].height + c.d->owner->room()) return false;
    c.counter = {};
    return true;
}

/// Is everything at and below a node as it is without limits?
bool Walker::is_within_limits(uint32_t node) const {
    const TrieNode &at = vocab_.nodes()[node];
    if (at.depth + at.height > safe_bytes_) return false;
    return ending_ < 0 || (at.byte != ending_ && !vocab_.below()[node].has(static_cast<uint8_t>(ending_)));
}

}  // namespace dovetail
