// The state of a generation: a few stacks of frames, and how they move on.
#pragma once

#include <memory>
#include <unordered_set>
#include <vector>

#include "automaton/automaton.h"

namespace dovetail {

/// A call that has not returned yet.
struct Frame {
    Frame *parent;
    const CallSite *site;
    Counter counter;  // of the caller
    uint64_t site_id;
    uint64_t hash;  // of the whole stack
};

inline uint64_t pack(Counter c) { return static_cast<uint64_t>(c.left) << 32 | c.need; }

inline Frame make_frame(Frame *parent, const CallSite *site, Counter counter) {
    return {parent, site, counter, site->id, mix(mix(parent ? parent->hash : 0, site->id), pack(counter))};
}

/// A capture opened or closed; a list that shares its tail with other stacks.
struct Mark {
    const Mark *before;
    uint64_t at;
    uint32_t name;
    bool open;
};

/// The top of one stack.
struct Config {
    // Clang up to 15 constructs aggregates in place only with the help of a constructor.
    Config(DState *state, Counter count, Frame *below, const Mark *opened) : d(state), counter(count), parent(below), marks(opened) {}

    DState *d;
    Counter counter;
    Frame *parent;
    const Mark *marks;
};

/// Hands out objects that live until the arena is rewound or dies.
template <class T> class Arena {
  public:
    T *make(const T &value) {
        const size_t block = used_ / kBlock;
        if (block == blocks_.size()) blocks_.push_back(std::make_unique<T[]>(kBlock));
        T *place = &blocks_[block][used_++ % kBlock];
        *place = value;
        return place;
    }
    size_t used() const { return used_; }
    void rewind(size_t used) { used_ = used; }

  private:
    static constexpr size_t kBlock = 64;
    std::vector<std::unique_ptr<T[]>> blocks_;
    size_t used_ = 0;
};

inline constexpr uint32_t kTokenCounted = 1u << 31;
inline constexpr size_t kMaxStacks = 512;
inline constexpr size_t kMaxArrivals = 1u << 16;
inline constexpr size_t kFewArrivals = 16;

inline bool same_stack(const Frame *a, const Frame *b) {
    for (; a != b; a = a->parent, b = b->parent)
        if (!a || !b || a->hash != b->hash || a->site != b->site || !(a->counter == b->counter)) return false;
    return true;
}

/// Inside a character of a text that has no tokens left: the token that reads this may go on but not end here.
inline bool is_stuck(const Config &c) {
    return c.d->counts_tokens && (c.counter.need & ~kTokenCounted) == 0 && (!c.d->extra || c.d->extra->exits.empty());
}

/// A set of stacks that have all read the same bytes. `complete`: one of them may end here.
struct Stacks {
    std::vector<Config> tops;
    bool complete = false;
    const Mark *end_marks = nullptr;

    void clear() {
        tops.clear();
        complete = false;
        end_marks = nullptr;
    }
    bool dead() const { return tops.empty() && !complete; }
};

/// Moves stacks over bytes. `World` says what a capture leaves behind and what it means to leave the lowest frame:
///   const Mark *opened(site, marks), closed(site, exit, marks); void bottom(exit, marks, Stacks &); and whether the key
///   that has just ended is new: bool key_ended(grows)
template <class World> class Mover {
  public:
    Mover(World &world, Arena<Frame> &frames) : world_(world), frames_(frames) {}

    /// Everything that `d` can do without a byte: counter steps, returns and calls.
    void arrive(DState *d, Counter counter, Frame *parent, const Mark *marks, Stacks &out) {
        begin();
        go(d, counter, parent, marks, out);
    }

    /// `count_tokens`: a text with a token budget spends one at the first byte that it takes of a token.
    void step(const Stacks &from, uint8_t byte, bool count_tokens, Stacks &out) {
        out.clear();
        begin();
        for (const Config &c : from.tops) {
            DState *to = c.d->next(byte);
            if (!to) continue;
            Counter counter = c.counter;
            if (c.d->measured && !c.d->measure(*to, counter)) continue;
            if (count_tokens && c.d->counts_tokens && !(counter.need & kTokenCounted)) {
                if (counter.need == 0) continue;
                counter.need = (counter.need - 1) | kTokenCounted;
            }
            go(to, counter, c.parent, c.marks, out);
        }
    }

  private:
    struct Place {
        const DState *d;
        Counter counter;
        const Frame *parent;

        bool operator==(const Place &o) const { return d == o.d && counter == o.counter && same_stack(parent, o.parent); }
    };
    struct PlaceHash {
        size_t operator()(const Place &p) const { return mix(mix(p.d->id(), pack(p.counter)), p.parent ? p.parent->hash : 0); }
    };

    void begin() {
        arrivals_ = 0;
        if (!seen_.empty()) seen_.clear();
    }

    /// Ambiguous grammars come to the same place by many ways; past a few arrivals it pays to notice.
    bool is_new(const DState *d, Counter counter, const Frame *parent) {
        if (++arrivals_ > kMaxArrivals) throw LimitError("the grammar is too ambiguous: over 65,536 moves at one byte");
        return arrivals_ <= kFewArrivals || seen_.insert({d, counter, parent}).second;
    }

    void go(DState *d, Counter counter, Frame *parent, const Mark *marks, Stacks &out) {
        if (d->expanded && d->byte_only) {
            add(d, d->keeps_counter() ? counter : Counter{}, parent, marks, out);
            return;
        }
        pending_.clear();
        for (;;) {
            if (is_new(d, counter, parent)) {
                d->owner->expand(*d);
                if (d->has_steps) {
                    const std::vector<Resolved> &ways = d->owner->resolve(*d, counter);
                    for (const Resolved &way : ways) way.state->owner->expand(*way.state);
                    for (size_t i = ways.size(); i-- > 1;) pending_.emplace_back(ways[i].state, ways[i].apply(counter), parent, marks);
                    if (!ways.empty()) {
                        // The first way is gone at once, and nothing is passed as a whole: what has just been written
                        // in parts is slow to read.
                        d = ways[0].state;
                        counter = ways[0].apply(counter);
                        continue;
                    }
                } else {
                    settle(d, counter, parent, marks, out);
                }
            }
            if (pending_.empty()) return;
            const Config &next = pending_.back();
            d = next.d;
            counter = next.counter;
            parent = next.parent;
            marks = next.marks;
            pending_.pop_back();
        }
    }

    void settle(DState *d, Counter counter, Frame *parent, const Mark *marks, Stacks &out) {
        if (!d->keeps_counter()) counter = {};
        if (d->has_bytes || (d->extra && !d->extra->tokens.empty())) add(d, counter, parent, marks, out);
        if (d->byte_only) return;
        const DState::Extra &extra = *d->extra;
        // Pushed last is taken first: returns come before calls.
        for (size_t i = extra.calls.size(); i-- > 0;) {
            const CallSite &site = extra.calls[i];
            const DState *back = d->measured && counter.left ? site.returns[0].state : nullptr;
            if (back && back->fewest >= counter.left) continue;
            Frame *frame = site.tail ? parent : frames_.make(make_frame(parent, &site, counter));
            pending_.emplace_back(site.entry(), site.init, frame, world_.opened(site, marks));
        }
        if (extra.behind_key && world_.key_ended(extra.key_grows)) pending_.emplace_back(extra.behind_key, counter, parent, marks);
        for (size_t i = extra.exits.size(); i-- > 0;) leave(extra.exits[i], parent, marks, out);
    }

    void leave(uint32_t exit, Frame *parent, const Mark *marks, Stacks &out) {
        if (!parent) {
            world_.bottom(exit, marks, out);
            return;
        }
        const CallSite &site = *parent->site;
        if (exit >= site.returns.size() || !site.returns[exit].state) return;
        pending_.emplace_back(site.returns[exit].state, parent->counter, parent->parent, world_.closed(site, exit, marks));
    }

    void add(DState *d, Counter counter, Frame *parent, const Mark *marks, Stacks &out) {
        for (Config &known : out.tops) {
            if (known.d != d || !same_stack(known.parent, parent)) continue;
            if (known.counter == counter) return;
            if (d->counts_tokens || d->keeps_set || d->measured) continue;
            // More repetitions left and fewer needed allow everything that the other allows.
            if (known.counter.left >= counter.left && known.counter.need <= counter.need) return;
            if (known.counter.left <= counter.left && known.counter.need >= counter.need) {
                known = {d, counter, parent, marks};
                return;
            }
        }
        if (out.tops.size() >= kMaxStacks) throw LimitError("the grammar is too ambiguous: over 512 stacks at one byte");
        out.tops.emplace_back(d, counter, parent, marks);
    }

    World &world_;
    Arena<Frame> &frames_;
    std::vector<Config> pending_;
    std::unordered_set<Place, PlaceHash> seen_;
    size_t arrivals_ = 0;
};

}  // namespace dovetail
