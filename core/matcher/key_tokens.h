// The tokens of a vocabulary that can end a JSON key which was there before.
#pragma once

#include <string_view>
#include <vector>

#include "matcher/object_keys.h"
#include "vocabulary/vocab.h"

namespace dovetail {

/// Found once for a vocabulary; mostly a few dozen, as few tokens have a quote behind something else.
class KeyTokens {
  public:
    explicit KeyTokens(const Vocab &vocab);

    /// The trie nodes at which the string that is under way ends; `escaped`: a backslash takes the first byte.
    const std::vector<uint32_t> &closing(bool escaped) const { return closing_[escaped]; }
    /// The tokens in which a key may begin and end when the reader is there, without `pairs`.
    const std::vector<uint32_t> &whole(ObjectKeys::Where where) const { return whole_[where]; }
    /// The tokens in which a key may begin, or that end before one, without `begun_pairs`.
    const std::vector<uint32_t> &beginning(ObjectKeys::Where where) const { return beginning_[where]; }
    /// The tokens in which a key may end and another of its object begin and end; and those in which another begins, or that
    /// end before one.
    const std::vector<uint32_t> &pairs() const { return pairs_; }
    const std::vector<uint32_t> &begun_pairs() const { return begun_pairs_; }

  private:
    std::vector<uint32_t> closing_[2], whole_[5], beginning_[5], pairs_, begun_pairs_;
};

}  // namespace dovetail
