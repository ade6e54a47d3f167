// Classes of like characters, and sets of them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "common.h"

namespace dovetail {

/// A set of symbols. Most alphabets are small, and such a set takes no memory of its own.
class Symbols {
  public:
    static Symbols first(size_t count) {
        Symbols all;
        for (size_t at = 0; at < count; ++at) all.add(at);
        return all;
    }

    void add(size_t symbol) {
        if (symbol < 64) {
            low_ |= uint64_t{1} << symbol;
            return;
        }
        const size_t word = symbol / 64 - 1;
        if (word >= more_.size()) more_.resize(word + 1);
        more_[word] |= uint64_t{1} << symbol % 64;
    }

    bool operator==(const Symbols &) const = default;

    bool empty() const {
        for (const uint64_t word : more_)
            if (word) return false;
        return !low_;
    }

    Symbols &operator|=(const Symbols &other) {
        low_ |= other.low_;
        if (more_.size() < other.more_.size()) more_.resize(other.more_.size());
        for (size_t at = 0; at < other.more_.size(); ++at) more_[at] |= other.more_[at];
        return *this;
    }

    Symbols operator&(const Symbols &other) const {
        Symbols both;
        both.low_ = low_ & other.low_;
        both.more_.resize(std::min(more_.size(), other.more_.size()));
        for (size_t at = 0; at < both.more_.size(); ++at) both.more_[at] = more_[at] & other.more_[at];
        return both;
    }

    /// Calls `visit` for each of them.
    template <class Visit> void each(Visit visit) const {
        for (uint64_t bits = low_; bits; bits &= bits - 1) visit(static_cast<size_t>(std::countr_zero(bits)));
        for (size_t word = 0; word < more_.size(); ++word)
            for (uint64_t bits = more_[word]; bits; bits &= bits - 1)
                visit((word + 1) * 64 + static_cast<size_t>(std::countr_zero(bits)));
    }

    /// The bits in words, the lowest first.
    std::vector<uint64_t> words() const {
        std::vector<uint64_t> all{low_};
        all.insert(all.end(), more_.begin(), more_.end());
        return all;
    }

  private:
    uint64_t low_ = 0;
    std::vector<uint64_t> more_;
};

/// The coarsest classes of characters that some given ones can be built from.
struct Alphabet {
    std::vector<Ranges> symbols;   // the characters of each, without surrogates
    std::vector<Symbols> classes;  // each given class
    explicit Alphabet(const std::vector<Ranges> &given);
};

}  // namespace dovetail
