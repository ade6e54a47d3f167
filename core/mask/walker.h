// Walks the trie of tokens with a few stacks, to find what they allow.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "mask/shared_masks.h"
#include "mask/char_run.h"
#include "mask/shortcuts.h"
#include "matcher/stacks.h"
#include "vocabulary/vocab.h"

namespace dovetail {

class MaskCache;
struct MaskNode;

/// The trie nodes that a walk left to the callers behind one exit.
struct Continuation {
    /// With its byte, because most of them are never looked at.
    struct Node {
        uint8_t byte;
        uint32_t node;

        auto operator<=>(const Node &) const = default;
    };
    uint32_t exit;
    std::vector<Node> nodes;
};

/// What a walk allows, in parts.
struct MaskParts {
    /// Known masks answer for these trie nodes: what a stack allows there, its frames each adding a part.
    struct Slice {
        uint32_t chain;
        Span nodes;  // roots of whole subtrees, one after another
    };

    /// The tokens of a character run among these ranks, of at most so many characters.
    struct Run {
        const CharRun *run;
        Span ranks;
        uint32_t most;
    };

    std::vector<Span> ranks;
    std::vector<uint32_t> tokens;  // by id
    std::vector<Continuation> rest;
    std::vector<std::vector<MaskNode *>> chains;
    std::vector<Slice> slices;
    std::vector<Run> runs;

    std::vector<Continuation::Node> &continuation_of(uint32_t exit);
    void take(Span span) {
        if (!ranks.empty() && ranks.back().last == span.first) ranks.back().last = span.last;
        else ranks.push_back(span);
    }
    /// What it has taken of memory it keeps.
    void clear() {
        ranks.clear();
        tokens.clear();
        rest.clear();
        chains.clear();
        slices.clear();
        runs.clear();
    }
};

/// The callers of the lowest frames are unknown: leaving them is noted, not followed.
class Walker {
  public:
    Walker(const Vocab &vocab, MaskCache &masks, Shortcuts shortcuts)
        : shortcuts_(shortcuts), vocab_(vocab), masks_(masks), mover_(*this, frames_), levels_(vocab_.longest() + 2) {}

    /// Every token from the root of the trie.
    void walk_all(const Config &top, MaskParts &out);
    /// What a return leads to before the next byte: stacks, and exits of the lowest frame.
    struct Arrival {
        Stacks stacks;
        std::vector<uint32_t> exits;
    };
    /// It lives until the next `arrive`.
    Arrival &arrive(DState *state, Counter counter);
    /// The trie nodes in `from` with these tops as the lowest frames.
    void walk_continuation(const std::vector<Continuation::Node> &from, std::span<const Config> tops, MaskParts &out);

    // What a Mover asks of its world.
    const Mark *opened(const CallSite &, const Mark *) { return nullptr; }
    const Mark *closed(const CallSite &, uint32_t, const Mark *) { return nullptr; }
    void bottom(uint32_t exit, const Mark *, Stacks &);
    bool key_ended(bool) { return true; }  // what was there before is the matcher's business

  private:
    /// Where the last node was known over: its siblings go with it where the same states come after their bytes.
    struct KnownSuffix {
        const DState *to = nullptr;                   // of the only stack
        const DState *from = nullptr, *at = nullptr;  // before and after the byte in the known mask
        uint32_t chain = kNone;
    };
    /// The masks of one stack, its top in a loop state that has a mask.
    struct Chain {
        DState *loop;
        const Counterpart *counterpart;  // or null
        std::vector<Frame> callers;
        uint32_t index;  // kNone where they cannot be made
    };

    /// The stacks before each character of a run: the last ones before all that follow, or before its end.
    struct Stages {
        CharSet chars;
        std::vector<std::vector<Config>> before;
        bool limited;  // none of the characters may come after the last stacks
    };

    void begin(MaskParts &out);
    bool enter(uint32_t node, size_t level);
    bool children(uint32_t node, size_t level, const std::vector<uint32_t> &exits);
    bool byte_only_children(uint32_t node, size_t level, const Config &top);
    bool enter_byte_only(uint32_t node, size_t level, const Config &top, DState *to);
    bool skip_run(uint32_t node, size_t level, std::span<const Config> tops);
    bool find_run(std::string_view path, std::span<const Config> tops, Stages &stages, bool &spaced);
    bool follow_run(std::span<const Config> tops, uint8_t sample, Stages &stages);
    bool covers(const Config &c, uint32_t node);
    bool take_known_suffix(const Config &c, uint32_t node);
    uint32_t chain_of(DState &loop, const Counterpart *counterpart, const Frame *parent);
    void share(uint32_t chain, uint32_t node) { share(chain, {node, vocab_.nodes()[node].end}); }
    void share(uint32_t chain, Span nodes);
    bool goes_with(const KnownSuffix &last, const DState *to, uint8_t byte) const;
    bool has(Shortcut one) const { return shortcuts_.has(one); }

    const Shortcuts shortcuts_;
    const Vocab &vocab_;
    MaskCache &masks_;
    Arena<Frame> frames_;
    Mover<Walker> mover_;
    std::vector<Stacks> levels_;
    std::vector<uint32_t> exits_;
    Arrival arrival_;
    MaskParts *out_ = nullptr;
    uint64_t steps_ = 0;
    std::vector<Chain> chains_;  // that this walk has asked for
    Stacks ahead_[2];
    KnownSuffix last_;  // of the node that was entered last
};

}  // namespace dovetail
