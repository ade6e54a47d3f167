// Token masks: walked once, then remembered by exactly the frames that the walk looked at.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "stack.h"

namespace dovetail {

class MaskCache;
class Store;

struct MaskKey {
    uint64_t site;  // 0 for the top of a stack
    Counter counter;

    bool operator==(const MaskKey &) const = default;
};

struct MaskKeyHash {
    size_t operator()(const MaskKey &k) const {
        return mix(k.site, static_cast<uint64_t>(k.counter.left) << 32 | k.counter.need);
    }
};

/// What one frame adds to a mask, given the frames above it.
///
/// `tokens` are those that end inside this frame. A token that leaves the frame is a matter of the caller: `rest` holds,
/// by exit, the trie nodes that come next there, sorted by byte, and `below` continues them for each caller seen so far.
struct MaskNode {
    struct Rest {
        uint32_t exit;
        std::vector<uint32_t> nodes;
    };
    std::vector<uint32_t> tokens;
    std::unique_ptr<uint32_t[]> dense;  // instead of `tokens` where they are many
    std::vector<Rest> rest;
    std::unordered_map<MaskKey, std::unique_ptr<MaskNode>, MaskKeyHash> below;
    MaskKey last_key{};
    MaskNode *last = nullptr;  // of `below`
    uint64_t used = 0;         // the fill that last looked at it
    uint32_t bytes = 0;
};

/// The masks of one automaton state, by counter; linked so that the cache can find all of them.
struct MaskRoots {
    explicit MaskRoots(MaskCache &cache);
    ~MaskRoots();
    MaskRoots(const MaskRoots &) = delete;
    MaskRoots &operator=(const MaskRoots &) = delete;

    MaskCache &cache;
    MaskRoots *before = nullptr, *after = nullptr;
    std::unordered_map<MaskKey, std::unique_ptr<MaskNode>, MaskKeyHash> roots;
    MaskNode *plain = nullptr;  // of `roots`, for counter zero
};

/// All cached masks of a store, bounded in bytes.
class MaskCache {
  public:
    MaskCache(Store &store, size_t limit);
    ~MaskCache();

    /// Overwrites `out` with the tokens that some stack allows; stop tokens are the matcher's business.
    void fill(const Stacks &stacks, uint32_t *out);
    size_t bytes() const { return bytes_; }

  private:
    friend struct MaskRoots;
    class Walker;

    MaskNode &root(const Config &top);
    MaskNode &below(MaskNode &node, const Frame &frame);
    Counter clamp(Counter c, bool counts_tokens) const;
    void finish(MaskNode &node, std::vector<uint32_t> tokens);
    void drop(MaskNode &node);
    void make_room();
    void write(const std::vector<MaskNode *> &nodes, uint32_t *out) const;

    Store &store_;
    size_t limit_;
    size_t bytes_ = 0;
    uint64_t fills_ = 0;
    MaskRoots *first_ = nullptr;
    std::unique_ptr<Walker> walker_;
    std::vector<MaskNode *> nodes_;
};

}  // namespace dovetail
