// Byte-only stacks do nothing but take bytes: most of a walk.
#pragma once

#include <algorithm>
#include <span>

#include "automaton/automaton.h"
#include "matcher/stacks.h"

namespace dovetail {

/// Known to do nothing but take bytes.
inline bool only_takes_bytes(const DState &d) { return d.expanded && d.byte_only && !d.counts_tokens; }
/// Whether a stack takes nothing but bytes while its counter stays as it is.
inline bool is_byte_only(const Config &c) { return only_takes_bytes(*c.d) && (c.counter == Counter{} || !c.d->measured); }
/// Whether nothing but the next byte of a character can come.
inline bool goes_on_inside(const DState &d) {
    bool inside = true;
    d.each_range([&](uint8_t low, uint8_t high, DState *) { inside = inside && low >= 0x80 && high < 0xC0; });
    return inside;
}
/// The only call that a state makes, where it does nothing else and nothing is left to do after it; or null.
inline const CallSite *only_call(DState &d) {
    const CallSite *site = d.expanded && !d.measured ? d.owner->lone_call(d) : nullptr;
    return site && site->tail ? site : nullptr;
}

/// The stack after one byte whose transition leads to `to`. Requires a byte-only stack before and after it, which the
/// caller has yet to ask of the result (is_byte_only).
inline Config moved(const Config &top, DState *to) {
    Counter counter = top.counter;
    if (const CallSite *call = only_call(*to)) {
        to = call->entry();
        counter = call->init;
    }
    if (to->has_steps && to->expanded && !to->counts_tokens) {
        const std::vector<Resolved> &ways = to->owner->resolve(*to, counter);
        if (ways.size() == 1) {
            to = ways[0].state;
            counter = ways[0].apply(counter);
        }
    }
    return {to, to->keeps_counter() ? counter : Counter{}, top.parent, nullptr};
}

/// Notes the bytes that some stacks take.
inline void note_bytes(std::span<const Config> stacks, bool *bytes) {
    for (const Config &c : stacks)
        c.d->each_range([&](uint8_t low, uint8_t high, DState *) { std::fill(bytes + low, bytes + high + 1, true); });
}

}  // namespace dovetail
