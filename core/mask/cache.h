// Token masks: walked once, then remembered by exactly the frames that the walk looked at.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "base/table.h"
#include "mask/walker.h"

namespace dovetail {

class MaskCache;
class Store;

struct MaskKey {
    uint64_t id = 0;  // of the call site or the state; 0 for the top of a stack
    Counter counter;

    bool operator==(const MaskKey &) const = default;
    uint64_t hash() const { return mix(id, static_cast<uint64_t>(counter.left) << 32 | counter.need); }
};

struct MaskNode;

/// Masks by what they are for.
class MaskMap {
  public:
    MaskNode *find(const MaskKey &key);
    MaskNode *add(const MaskKey &key, std::unique_ptr<MaskNode> node) { return table_.add({key, std::move(node)}).node.get(); }
    template <class Visit> void each(Visit visit) const {
        table_.each([&](const Slot &slot) { visit(*slot.node); });
    }
    template <class Test> void erase_if(Test test) {
        table_.erase_if([&](const Slot &slot) { return test(*slot.node); });
    }

  private:
    struct Slot {
        MaskKey key;
        std::unique_ptr<MaskNode> node;

        explicit operator bool() const { return node != nullptr; }
        uint64_t hash() const { return key.hash(); }
    };

    Table<Slot> table_;
};

/// What one frame adds to a mask, given the frames above it.
///
/// `base` and `tokens` are those that end inside this frame. A token that leaves the frame is a matter of the caller:
/// `rest` holds, by exit, the trie nodes that come next there, sorted by byte. `below` continues them for each call site
/// seen so far.
struct MaskNode {
    // What filling a known mask reads comes first.
    SharedMask *base = nullptr;          // where the tokens are many; released when the node is dropped
    std::unique_ptr<uint32_t[]> tokens;  // those that differ from it, by rank, those outside the trie last
    uint32_t token_count = 0;
    uint32_t bytes = 0;
    uint64_t used = 0;  // the fill that last looked at it; written through `use`, by many threads at once
    bool continues = false;

    std::vector<Continuation> rest;
    std::unique_ptr<MaskMap> below;  // or null; most nodes have no rest

    void use(uint64_t fill) { std::atomic_ref(used).store(fill, std::memory_order_relaxed); }
    MaskNode *find_below(const MaskKey &key) { return below ? below->find(key) : nullptr; }
    MaskNode *add_below(const MaskKey &key, std::unique_ptr<MaskNode> node) {
        if (!below) below = std::make_unique<MaskMap>();
        return below->add(key, std::move(node));
    }
};

/// The masks of one automaton state, by counter; linked so that the cache can find all of them.
struct MaskRoots {
    MaskRoots(MaskCache &cache, DState &state);
    ~MaskRoots();
    MaskRoots(const MaskRoots &) = delete;
    MaskRoots &operator=(const MaskRoots &) = delete;

    MaskCache &cache;
    DState &state;
    MaskRoots *before = nullptr, *after = nullptr;
    std::unique_ptr<MaskNode> uncounted;  // for counter zero
    MaskMap counted;

    template <class Visit> void each(Visit visit) {
        if (uncounted) visit(*uncounted);
        counted.each(visit);
    }
};

/// All cached masks of a store, bounded in bytes.
class MaskCache {
  public:
    MaskCache(Store &store, size_t limit);
    ~MaskCache();

    /// Overwrites `out` with the tokens that some stack allows; stop tokens are the matcher's business.
    void fill(const Stacks &stacks, uint32_t *out);
    /// Overwrites `out` where every part of the mask is known, else returns false. Needs only a shared lock of the store.
    bool fill_known(const Stacks &stacks, uint32_t *out);
    size_t bytes() const { return bytes_ + shared_masks_.bytes() + runs_.bytes(); }
    const CharRun &run(const CharSet &chars, bool spaced) { return runs_.of(chars, spaced); }
    /// The masks of a stack: its top in a loop state that has one, the calls of a counterpart, then its callers, innermost
    /// first.
    /// False where some cannot be made now, because making them has led here.
    bool chain(DState &loop, const Counterpart *counterpart, const std::vector<Frame> &callers, std::vector<MaskNode *> &out);

  private:
    friend struct MaskRoots;

    /// What making one mask takes.
    struct Tools {
        Tools(const Store &store, MaskCache &cache);

        Walker walker;
        MaskParts parts;
    };
    /// Tools for the time of one mask: making it may take another one.
    class Turn {
      public:
        explicit Turn(MaskCache &cache);
        ~Turn() { --cache_.walking_; }
        Turn(const Turn &) = delete;
        Walker *operator->() const { return &tools().walker; }
        MaskParts &parts() const { return tools().parts; }

      private:
        Tools &tools() const { return *cache_.turns_[place_]; }

        MaskCache &cache_;
        size_t place_;
    };

    MaskNode *known_root(const Config &top) const;
    MaskNode &root(const Config &top);
    std::unique_ptr<MaskNode> make_root(DState &d, Counter counter);
    MaskNode *try_below(MaskNode &node, const Frame &frame);
    MaskNode &below(MaskNode &node, const Frame &frame);
    std::unique_ptr<MaskNode> make_below(MaskNode &node, const Frame &frame, Counter counter);
    Counter clamp(const Config &top) const;
    Counter clamp(const Frame &frame) const;
    Counter clamp(Counter c, bool counts_tokens) const;
    Counter clamp_measured(Counter c, uint32_t room) const;
    std::unique_ptr<MaskNode> finished(MaskParts &parts);
    void add_continuations_of_slices(MaskParts &parts);
    bool is_large(const MaskParts &parts) const;
    void gather_few(const MaskParts &parts);
    SharedMask *gather_many(const MaskParts &parts);
    void add_slice(const MaskNode &node, Span ranks);
    std::span<const uint32_t> tokens_in(const MaskNode &node, Span ranks) const;
    void drop(MaskNode &node);
    void make_room();
    void write(const std::vector<MaskNode *> &nodes, uint32_t *out) const;

    Store &store_;
    size_t limit_;
    size_t bytes_ = 0;
    uint64_t fills_ = 0;
    MaskRoots *first_ = nullptr;
    SharedMasks shared_masks_;
    CharRuns runs_;
    std::vector<std::unique_ptr<Tools>> turns_;
    size_t walking_ = 0;
    std::vector<std::pair<const MaskNode *, MaskKey>> making_;  // of `below`
    std::vector<MaskNode *> nodes_;
    // Scratch of `finished`.
    RankMask mask_, short_;
    std::vector<uint32_t> ranks_, others_;
    std::vector<Span> spans_;
    std::vector<SharedMask *> likely_;
};

}  // namespace dovetail
