// Walks the trie of tokens with a few stacks, to find what they allow.
#pragma once

#include <algorithm>
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
    std::vector<uint32_t> dense;  // a mask, or nothing
    std::vector<uint32_t> tokens;
    std::vector<Rest> rest;

    std::vector<uint32_t> &rest_of(uint32_t exit);
    void add_rest(const std::vector<Rest> &more);
    void clear() {
        dense.clear();
        tokens.clear();
        rest.clear();
    }
};

/// Which tokens stay inside a counted loop, and where the others leave it: one look at the trie serves every count.
struct LoopProfile {
    struct Way {
        uint32_t node;   // entered by a byte that leaves the loop
        uint16_t chars;  // repetitions before it
        bool for_good;   // what follows does not look at the counter
    };
    /// What is found behind the ways for good, where the lower bound is met; both lists are sorted by repetitions.
    struct Found {
        std::vector<uint32_t> items;
        std::vector<uint16_t> chars;

        std::span<const uint32_t> up_to(size_t most) const {
            const auto end = std::upper_bound(chars.begin(), chars.end(), most);
            return {items.data(), static_cast<size_t>(end - chars.begin())};
        }
    };
    bool usable = false;
    uint8_t sample = 0;            // a byte that loops
    std::vector<uint32_t> inside;  // the mask of tokens that never leave
    std::vector<Way> ways;         // by chars
    Found left;
    std::vector<std::pair<uint32_t, Found>> rest;  // by exit

    size_t memory() const;
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
    void collect(uint32_t node, uint16_t chars, uint8_t utf8, const DState &d, const Loops &loops, LoopProfile &out) const;
    void follow_ways(DState &d, LoopProfile &out);
    bool find_stages(const Config &top, const LoopProfile &profile, std::vector<std::vector<Config>> &stages);

    const Vocab &vocab_;
    Arena<Frame> frames_;
    Mover<Walker> mover_;
    std::vector<Stacks> levels_;
    std::vector<uint32_t> exits_;
    MaskParts *out_ = nullptr;
    uint64_t steps_ = 0;
};

}  // namespace dovetail
