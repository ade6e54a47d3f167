// Large token sets that many masks share: such a mask is one of them and the few tokens in which it differs.
#pragma once

#include <bit>
#include <memory>
#include <span>
#include <vector>

#include "vocabulary/vocab.h"

namespace dovetail {

/// A set of tokens of the trie, by their rank there.
using RankMask = std::vector<uint64_t>;

/// Ranks, or trie nodes, from `first` up to but not including `last`.
struct Span {
    uint32_t first, last;
};

inline bool has_rank(const RankMask &mask, uint32_t rank) { return mask[rank / 64] >> (rank % 64) & 1; }
inline void clear_rank(RankMask &mask, uint32_t rank) { mask[rank / 64] &= ~(uint64_t{1} << (rank % 64)); }
inline void set_rank(RankMask &mask, uint32_t rank) { mask[rank / 64] |= uint64_t{1} << (rank % 64); }

/// Calls `visit(rank)` for each bit that is set in a word.
template <class Visit> void each_rank(size_t word, uint64_t bits, Visit visit) {
    for (; bits; bits &= bits - 1) visit(static_cast<uint32_t>(word * 64) + static_cast<uint32_t>(std::countr_zero(bits)));
}

/// Calls `visit(word, bits)` for the words of a span, with the bits of the span in each.
template <class Visit> void each_word(Span span, Visit visit) {
    if (span.first >= span.last) return;
    const uint32_t from = span.first / 64, to = (span.last - 1) / 64;
    const uint64_t head = ~uint64_t{0} << (span.first % 64), tail = ~uint64_t{0} >> (63 - (span.last - 1) % 64);
    if (from == to) {
        visit(from, head & tail);
        return;
    }
    visit(from, head);
    for (uint32_t w = from + 1; w < to; ++w) visit(w, ~uint64_t{0});
    visit(to, tail);
}

struct SharedMask {
    std::vector<uint32_t> ids;  // a bit for each token, as callers want it
    RankMask ranks;             // the same tokens in the order of the trie
    uint32_t users = 0;
    uint64_t used = 0;  // the last fill that looked at one of them; known only while room is made
};

class SharedMasks {
  public:
    SharedMasks(const Vocab &vocab, bool shared) : vocab_(vocab), shared_(shared) {}

    /// Fills `flips` with the ranks in which `mask` differs from the base that is returned, which the caller must
    /// release; a null base stands for the empty set. The bases in `likely` are tried first.
    SharedMask *find(const RankMask &mask, std::span<SharedMask *const> likely, std::vector<uint32_t> &flips);
    void release(SharedMask *base);
    size_t base_bytes() const;
    /// Of all bases together.
    size_t bytes() const { return shared_masks_.size() * base_bytes(); }
    const std::vector<std::unique_ptr<SharedMask>> &all() const { return shared_masks_; }

  private:
    SharedMask *make(const RankMask &mask);

    const Vocab &vocab_;
    const bool shared_;
    std::vector<std::unique_ptr<SharedMask>> shared_masks_;  // the newest last
    std::vector<uint32_t> tried_;
};

}  // namespace dovetail
