// Walks the trie of tokens with a few stacks, to find what they allow.
#pragma once

#include <span>
#include <vector>

#include "stack.h"
#include "vocab.h"

namespace dovetail {

/// The trie nodes that a walk left to the callers behind one exit.
struct Rest {
    uint32_t exit;
    std::vector<uint32_t> nodes;
};

/// What a walk found.
struct MaskParts {
    std::vector<uint32_t> tokens;
    std::vector<Rest> rest;

    std::vector<uint32_t> &rest_of(uint32_t exit);
    void add_rest(const std::vector<Rest> &more);
    void clear() {
        tokens.clear();
        rest.clear();
    }
};

/// Which tokens stay inside a counted loop, and where the others leave it: one look at the trie serves every count.
struct LoopProfile {
    struct Way {
        uint32_t node;   // entered by a byte that leaves the loop
        uint16_t chars;  // repetitions before it
    };
    bool usable = false;
    uint8_t sample = 0;                                // a byte that loops
    std::vector<std::pair<uint32_t, uint32_t>> inside;  // ranges of Vocab::order()
    std::vector<Way> ways;                             // by chars

    size_t memory() const { return sizeof(*this) + inside.size() * 8 + ways.size() * sizeof(Way); }
};

/// The callers of the lowest frames are unknown: leaving them is noted, not followed.
class Walker {
  public:
    explicit Walker(const Vocab &vocab) : vocab_(vocab), mover_(*this, frames_), levels_(vocab_.longest() + 2) {}

    /// Every token from the root of the trie.
    void walk_all(const Config &top, MaskParts &out);
    /// The same for a counted loop; false where the profile does not serve this count.
    bool walk_loop(const Config &top, const LoopProfile &profile, MaskParts &out);
    LoopProfile profile(DState &d);
    /// What a return leads to before the next byte; the frames live until the next `arrive`.
    void arrive(DState *state, Counter counter, Stacks &out, std::vector<uint32_t> &exits);
    /// The trie nodes in `from`, which are sorted by byte, with these tops as the lowest frames.
    void walk_rest(const std::vector<uint32_t> &from, std::span<const Config> tops, MaskParts &out);

    // What a Mover asks of its world.
    const Mark *opened(const CallSite &, const Mark *) { return nullptr; }
    const Mark *closed(const CallSite &, uint32_t, const Mark *) { return nullptr; }
    void bottom(uint32_t exit, const Mark *, Stacks &);

  private:
    void begin(MaskParts &out);
    bool enter(uint32_t node, size_t level);
    bool children(uint32_t node, size_t level, const std::vector<uint32_t> &exits);
    bool covers(const Config &c, uint32_t node);
    void take(uint32_t first, uint32_t last);
    void collect(uint32_t node, uint16_t chars, uint8_t utf8, const Loops &loops, LoopProfile &out) const;

    const Vocab &vocab_;
    Arena<Frame> frames_;
    Mover<Walker> mover_;
    std::vector<Stacks> levels_;
    std::vector<uint32_t> exits_;
    MaskParts *out_ = nullptr;
    uint64_t steps_ = 0;
};

}  // namespace dovetail
