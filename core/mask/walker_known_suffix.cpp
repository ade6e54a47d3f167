// Known suffixes: a walk that has come where another walk, whose mask is known, came by the same bytes is over, because
// the two allow the same from there on.
#include <algorithm>

#include "mask/cache.h"

namespace dovetail {

namespace {

constexpr int kFewestInLoop = 10;  // ASCII characters; what loops on fewer is walked quickly

}  // namespace

/// Leaves everything at and below a node to masks that are known, or says that it cannot.
///
/// Where the mask of another state came to this one by the same bytes, the two allow the same from here on. So a walk
/// that has come to the inside of a string by way of a key is over.
bool Walker::take_known_suffix(const Config &c, uint32_t node) {
    const auto &nodes = vocab_.nodes();
    if (!has(Shortcut::KnownSuffix) || !(c.counter == Counter{}) || c.d->counts_tokens) return false;
    DState *state = c.d;
    const Counterpart *through = nullptr;
    if (nodes[node].byte >= 0x80 && c.d->byte_only && has(Shortcut::InsideCharacter)) {
        // Inside a character that is followed by a call: the callee may have taken the whole of it.
        const Counterpart *counterpart = c.d->extra ? c.d->extra->counterpart.get() : nullptr;
        if (!counterpart || counterpart->may_try()) counterpart = &c.d->owner->counterpart(*c.d, vocab_.path(node));
        if (counterpart->state) {
            state = counterpart->state;
            through = counterpart;
        }
    }
    DState *loop = state->owner->loop_state();
    if (!loop || !loop->uncounted_mask) return false;
    const std::string_view path = vocab_.path(node);
    DState *from = loop->follow(path.substr(0, path.size() - 1));
    if (!from || from->follow(path.substr(path.size() - 1)) != state) return false;
    const uint32_t chain = chain_of(*loop, through, c.parent);
    if (chain == kNone) return false;
    share(chain, node);
    last_ = {nullptr, from, state, chain};
    return true;
}

bool Walker::goes_with(const KnownSuffix &last, const DState *to, uint8_t byte) const {
    return has(Shortcut::Siblings) && last.to && last.to == to && last.from->next(byte) == last.at;
}

/// Where in `MaskParts::chains` the masks of a stack are whose top is in a loop state; kNone where none can be made.
uint32_t Walker::chain_of(DState &loop, const Counterpart *counterpart, const Frame *parent) {
    const auto same = [&](const Chain &known) {
        if (known.loop != &loop || !known.counterpart != !counterpart) return false;
        if (counterpart && known.counterpart->sites != counterpart->sites) return false;
        size_t i = 0;
        for (const Frame *f = parent; f; f = f->parent, ++i) {
            if (i == known.callers.size()) return false;
            if (f->site != known.callers[i].site || !(f->counter == known.callers[i].counter)) return false;
        }
        return i == known.callers.size();
    };
    const auto known = std::find_if(chains_.begin(), chains_.end(), same);
    if (known != chains_.end()) return known->index;
    Chain &chain = chains_.emplace_back(Chain{&loop, counterpart, {}, kNone});
    for (const Frame *f = parent; f; f = f->parent) chain.callers.push_back(*f);
    std::vector<MaskNode *> masks;
    if (!masks_.chain(loop, counterpart, chain.callers, masks)) return kNone;
    chain.index = static_cast<uint32_t>(out_->chains.size());
    out_->chains.push_back(std::move(masks));
    return chain.index;
}

void Walker::share(uint32_t chain, Span nodes) {
    std::vector<MaskParts::Slice> &slices = out_->slices;
    const bool adjoins = !slices.empty() && slices.back().chain == chain && slices.back().nodes.last == nodes.first;
    if (adjoins) slices.back().nodes.last = nodes.last;
    else slices.push_back({chain, nodes});
}

void Automaton::offer_loop_state(DState &d) {
    if (loop_state_ && loop_state_->uncounted_mask) return;
    if (d.byte_only && chars_to(d, &d).ascii() >= kFewestInLoop) loop_state_ = &d;
}

const CallSite *Automaton::lone_call(DState &d) {
    expand(d);
    if (d.has_bytes || d.has_steps || !d.extra || d.extra->calls.size() != 1) return nullptr;
    return d.extra->exits.empty() && d.extra->tokens.empty() && !d.extra->behind_key ? &d.extra->calls[0] : nullptr;
}

const Counterpart &Automaton::counterpart(DState &d, std::string_view bytes) {
    if (!extra(d).counterpart) {
        d.extra->counterpart = std::make_unique<Counterpart>();
        account(sizeof(Counterpart));
    }
    Counterpart &counterpart = *d.extra->counterpart;
    if (!counterpart.may_try()) return counterpart;
    ++counterpart.tries;
    constexpr int kDepth = 4;  // the bytes of a character
    DState *at = &d;
    for (int i = 0; i < kDepth && at; ++i) {
        std::vector<const CallSite *> sites;
        DState *entered = at;
        for (const CallSite *site = lone_call(*at); site && sites.size() < kDepth; site = entered->owner->lone_call(*entered)) {
            sites.push_back(site);
            entered = site->entry();
        }
        if (!sites.empty()) {
            DState *loop = entered->owner->loop_state(), *same = loop ? loop->follow(bytes) : nullptr;
            if (same && takes_the_same(d, *same, *sites[0], *entered, kDepth)) counterpart = {same, std::move(sites), 0};
            break;
        }
        DState *next = nullptr;
        if (at->byte_only) at->each_range([&](uint8_t, uint8_t, DState *to) { next = next ? next : to; });
        at = next;
    }
    return counterpart;
}

/// Whether `d` leads to the call at `site`, which comes to `entered`, as `other` leads there itself.
bool Automaton::takes_the_same(DState &d, DState &other, const CallSite &site, DState &entered, int depth) {
    if (lone_call(d) == &site) return &entered == &other && !other.has_steps && !other.keeps_counter();
    other.owner->expand(other);
    if (depth == 0 || !d.byte_only || !other.byte_only || d.counter_live || other.counter_live) return false;
    const auto same = [&](const DState::Range &a, const DState::Range &b) {
        return a.low == b.low && a.high == b.high && takes_the_same(*a.to, *b.to, site, entered, depth - 1);
    };
    if (!d.dense && !other.dense && std::equal(d.row, d.row + d.ranges, other.row, other.row + other.ranges, same)) return true;
    DState *last = nullptr, *last_other = nullptr;
    for (int b = 0; b < 256; ++b) {
        DState *to = d.next(static_cast<uint8_t>(b)), *there = other.next(static_cast<uint8_t>(b));
        if ((!to && !there) || (to == last && there == last_other)) continue;
        if (!to || !there || !takes_the_same(*to, *there, site, entered, depth - 1)) return false;
        last = to;
        last_other = there;
    }
    return true;
}

}  // namespace dovetail
