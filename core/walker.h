// Walks the trie of tokens with a few stacks, to find what they allow.
#pragma once

#include <algorithm>
#include <span>
#include <unordered_map>
#include <vector>

#include "bases.h"
#include "runs.h"
#include "stack.h"
#include "vocab.h"

namespace dovetail {

class MaskCache;
struct MaskNode;

/// The trie nodes that a walk left to the callers behind one exit.
struct Rest {
    /// With its byte, because most of them are never looked at.
    struct Node {
        uint8_t byte;
        uint32_t node;

        auto operator<=>(const Node &) const = default;
    };
    uint32_t exit;
    std::vector<Node> nodes;
};

/// What a walk found.
struct MaskParts {
    /// Known masks answer for these trie nodes: what a stack allows there, its frames each adding a part.
    struct Slice {
        uint32_t chain;
        Span nodes;  // roots of whole subtrees, one after another
    };

    /// The tokens of `runs` among these ranks.
    struct Run {
        const Runs *runs;
        Span ranks;
    };

    RankMask dense;                // or nothing
    std::vector<Span> ranks;
    std::vector<uint32_t> tokens;  // by id
    std::vector<Rest> rest;
    std::vector<std::vector<MaskNode *>> chains;
    std::vector<Slice> slices;
    std::vector<Run> runs;

    std::vector<Rest::Node> &rest_of(uint32_t exit);
    void add_rest(const std::vector<Rest> &more);
    void take(Span span) {
        if (!ranks.empty() && ranks.back().last == span.first) ranks.back().last = span.last;
        else ranks.push_back(span);
    }
    /// What it has taken of memory it keeps.
    void clear() {
        dense.clear();
        ranks.clear();
        tokens.clear();
        rest.clear();
        chains.clear();
        slices.clear();
        runs.clear();
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
    uint8_t sample = 0;     // a byte that loops
    RankMask inside;        // the tokens that never leave
    std::vector<Way> ways;  // by chars
    Found left;             // ranks
    std::vector<std::pair<uint32_t, Found>> rest;  // by exit

    size_t memory() const;
};

/// The callers of the lowest frames are unknown: leaving them is noted, not followed.
class Walker {
  public:
    Walker(const Vocab &vocab, MaskCache &masks)
        : vocab_(vocab), masks_(masks), mover_(*this, frames_), levels_(vocab_.longest() + 2) {}

    /// Every token from the root of the trie.
    void walk_all(const Config &top, MaskParts &out);
    /// The same where `all` is the mask for a counter without limits.
    void walk_limited(const Config &top, MaskNode &all, MaskParts &out);
    /// The same for a counted loop; false where the profile does not serve this count.
    bool walk_loop(const Config &top, const LoopProfile &profile, MaskParts &out);
    LoopProfile profile(DState &d);
    uint64_t steps() const { return steps_; }
    /// What a return leads to before the next byte: stacks, and exits of the lowest frame.
    struct Arrival {
        Stacks stacks;
        std::vector<uint32_t> exits;
    };
    /// It lives until the next `arrive`.
    Arrival &arrive(DState *state, Counter counter);
    /// The trie nodes in `from` with these tops as the lowest frames.
    void walk_rest(const std::vector<Rest::Node> &from, std::span<const Config> tops, MaskParts &out);

    // What a Mover asks of its world.
    const Mark *opened(const CallSite &, const Mark *) { return nullptr; }
    const Mark *closed(const CallSite &, uint32_t, const Mark *) { return nullptr; }
    void bottom(uint32_t exit, const Mark *, Stacks &);
    bool key_ended(bool) { return true; }  // what was there before is the matcher's business

  private:
    /// Siblings that lead to the state where the last one was handed over are handed over with it.
    struct Run {
        const DState *to = nullptr;                   // where the only stack goes
        const DState *from = nullptr, *at = nullptr;  // how the known mask gets there by the same byte
        DState *home = nullptr;
        uint32_t chain = kNone;
    };
    /// Where a byte led that was handed over: later nodes by which the same stack comes there are handed over at once.
    struct Way {
        const DState *to;
        uint64_t callers;  // their hash
        DState *home;
        const DState *at;
        uint32_t chain;
    };
    /// The masks of one stack, its top in a state that has a mask of its own.
    struct Chain {
        DState *home;
        const Lift *lift;  // or null
        std::vector<Frame> callers;
        uint32_t index;  // kNone: there are none
        bool tried;      // to make them
    };

    /// A stack without its frames: enough to know it again during one walk.
    struct Spot {
        const DState *d;
        Counter counter;
        uint64_t callers;  // their hash

        bool operator==(const Spot &) const = default;
    };
    struct Spots {
        Spot first;
        std::vector<Spot> others;

        bool operator==(const Spots &) const = default;
    };
    struct SpotsHash {
        size_t operator()(const Spots &spots) const;
    };
    /// Texts of up to `length` of these characters, all of them ASCII, leave some stack alive.
    struct Reach {
        CharSet chars;
        uint32_t length = 0;
    };

    using Stages = std::vector<std::vector<Config>>;  // one for each of some characters, and the last for all that follow

    void begin(MaskParts &out);
    bool enter(uint32_t node, size_t level);
    bool children(uint32_t node, size_t level, const std::vector<uint32_t> &exits);
    bool plain_children(uint32_t node, size_t level, const Config &top);
    bool plain_child(uint32_t node, size_t level, const Config &top, DState *to);
    bool look_for_loop(std::span<const Config> tops, uint8_t sample, Stages &stages);
    bool find_loop(std::string_view path, std::span<const Config> tops, Stages &stages, bool &spaced);
    bool leap(uint32_t node, size_t level, std::span<const Config> tops);
    bool covers(const Config &c, uint32_t node);
    bool leap_measured(const Config &top);
    bool relax(Config &c, uint32_t node) const;
    bool is_within_limits(uint32_t node) const;
    bool hand_over(const Config &c, uint32_t node);
    bool hand_over_again(const Config &top, const DState *to, uint32_t node);
    bool join(const Stacks &stacks, uint32_t node);
    uint32_t chain_of(DState &home, const Lift *lift, const Frame *parent, bool large);
    void share(uint32_t chain, uint32_t node) { share(chain, {node, vocab_.nodes()[node].end}); }
    void share(uint32_t chain, Span nodes);
    static bool goes_on(const Run &run, const DState *to, uint8_t byte);
    static Spots spots(const Stacks &stacks);
    bool reaches(const Stacks &stacks, uint32_t node);
    const Reach &look_ahead(const Stacks &stacks);
    void look_on(const Stacks &from, uint32_t way, CharSet &chars,
                 std::vector<std::pair<Spots, uint32_t>> &seen, std::vector<Stacks> &next);
    void collect(uint32_t node, uint16_t chars, uint8_t utf8, const DState &d, const Loops &loops, LoopProfile &out) const;
    void follow_ways(DState &d, LoopProfile &out);
    bool find_stages(const Config &top, const LoopProfile &profile, std::vector<std::vector<Config>> &stages);

    const Vocab &vocab_;
    MaskCache &masks_;
    Arena<Frame> frames_;
    Mover<Walker> mover_;
    std::vector<Stacks> levels_;
    std::vector<uint32_t> exits_;
    Arrival arrival_;
    MaskParts *out_ = nullptr;
    uint64_t steps_ = 0;
    bool sharing_ = true;
    uint32_t unlimited_ = kNone;  // the chain that knows what is allowed without limits
    uint32_t safe_bytes_ = 0;     // of a token, which cannot come to the limits
    int ending_ = -1;             // the byte that ends measured text too early, or none
    std::vector<Chain> chains_;  // that this walk has asked for
    std::vector<Way> ways_;
    std::unordered_map<Spots, Reach, SpotsHash> reaches_;
    Stacks joined_[2], ahead_[2];
    Stacks alone_;
    Run run_;  // of the node that was entered last
};

}  // namespace dovetail
