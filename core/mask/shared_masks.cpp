// Finds a base for a mask among those that other masks share.

#include "mask/shared_masks.h"

#include <algorithm>
#include <bit>

namespace dovetail {

namespace {

constexpr size_t kMaxFlips = 256;  // more would cost a fill more than a base of its own
constexpr size_t kGoodFlips = 32;  // no other base is tried
constexpr size_t kNewest = 6;      // bases to try beside the likely ones

/// Lists the ranks in which two masks differ; false where they are over `limit`. No base is the empty set.
bool differ(const RankMask &mask, const SharedMask *base, size_t limit, std::vector<uint32_t> &out) {
    constexpr size_t kBlock = 8;  // words; most are the same, and many are compared at once
    out.clear();
    const uint64_t *left = mask.data(), *right = base ? base->ranks.data() : nullptr;
    const auto bits_at = [&](size_t w) { return right ? left[w] ^ right[w] : left[w]; };
    for (size_t first = 0; first < mask.size(); first += kBlock) {
        const size_t last = std::min(first + kBlock, mask.size());
        uint64_t any = 0;
        for (size_t w = first; w < last; ++w) any |= bits_at(w);
        if (!any) continue;
        for (size_t w = first; w < last; ++w)
            for (uint64_t bits = bits_at(w); bits; bits &= bits - 1) {
                if (out.size() == limit) return false;
                out.push_back(static_cast<uint32_t>(w * 64) + static_cast<uint32_t>(std::countr_zero(bits)));
            }
    }
    return true;
}

/// Has the mask at most that many tokens?
bool is_small(const RankMask &mask, size_t limit) {
    size_t count = 0;
    for (size_t w = 0; w < mask.size() && count <= limit; ++w)
        if (mask[w]) count += static_cast<size_t>(std::popcount(mask[w]));
    return count <= limit;
}

}  // namespace

SharedMask *SharedMasks::find(const RankMask &mask, std::span<SharedMask *const> likely, std::vector<uint32_t> &flips) {
    const size_t few = vocab_.mask_words() / 4;
    if (is_small(mask, few) && differ(mask, nullptr, few, flips)) return nullptr;
    SharedMask *best = nullptr;
    size_t limit = kMaxFlips;
    auto attempt = [&](SharedMask *base) {
        if (!shared_ || (best && limit <= kGoodFlips) || !differ(mask, base, limit, tried_)) return;
        best = base;
        limit = tried_.size();
        flips.swap(tried_);
    };
    for (SharedMask *base : likely) attempt(base);
    const size_t count = shared_masks_.size();
    for (size_t i = 0; i < std::min(count, kNewest); ++i) attempt(shared_masks_[count - 1 - i].get());
    if (!best) {
        best = make(mask);
        flips.clear();
    }
    ++best->users;
    return best;
}

SharedMask *SharedMasks::make(const RankMask &mask) {
    auto base = std::make_unique<SharedMask>();
    base->ranks = mask;
    base->ids.resize(vocab_.mask_words());
    for (size_t w = 0; w < mask.size(); ++w)
        each_rank(w, mask[w], [&](uint32_t rank) {
            const uint32_t token = vocab_.order()[rank];
            base->ids[token / 32] |= 1u << (token % 32);
        });
    shared_masks_.push_back(std::move(base));
    return shared_masks_.back().get();
}

void SharedMasks::release(SharedMask *base) {
    if (--base->users) return;
    std::erase_if(shared_masks_, [&](const auto &known) { return known.get() == base; });
}

size_t SharedMasks::base_bytes() const { return sizeof(SharedMask) + vocab_.mask_words() * 4 + vocab_.rank_words() * 8; }

}  // namespace dovetail
