// The tokens of one tokenizer as a trie in preorder, with what a walk wants to know about whole subtrees.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/common.h"

namespace dovetail {

/// States of a well-formed UTF-8 reader: 0 is a character boundary, kUtf8Bad a byte that cannot come.
inline constexpr uint8_t kUtf8Bad = 8;
uint8_t utf8_next(uint8_t state, uint8_t byte);

struct TrieNode {
    uint32_t end;     // index just past the subtree
    uint32_t first;   // into Vocab::order(): own tokens first, then those of the subtree
    uint8_t byte;     // on the edge from the parent
    uint8_t utf8_ok;  // bit s: every path below is well-formed when read from UTF-8 state s
    uint16_t depth;   // bytes from the root
};

/// Goes over the children of a node.
struct Children {
    uint32_t node = 0;  // the child
    uint32_t end;       // just past its subtree, where the next child is
    uint8_t byte = 0;

    /// The nodes from `first` on whose subtrees end at `last`.
    Children(const TrieNode *nodes, uint32_t first, uint32_t last) : end(first), nodes_(nodes), last_(last) {}

    bool next() {
        if (end == last_) return false;
        node = end;
        byte = nodes_[node].byte;
        end = nodes_[node].end;
        return true;
    }

  private:
    const TrieNode *nodes_;
    uint32_t last_;
};

/// A set of characters: ASCII, and bytes from 0xC0 on that stand for every well-formed character that they begin.
struct CharSet {
    uint64_t low = 0, high = 0, leads = 0;

    bool operator==(const CharSet &) const = default;
    CharSet common(const CharSet &other) const { return {low & other.low, high & other.high, leads & other.leads}; }
    bool within(const CharSet &other) const { return !(low & ~other.low || high & ~other.high || leads & ~other.leads); }
    bool has(uint8_t byte) const {
        if (byte < 64) return low >> byte & 1;
        if (byte < 128) return high >> (byte - 64) & 1;
        return byte >= 0xC0 && (leads >> (byte - 0xC0) & 1);
    }
    void add(uint8_t byte) {
        if (byte < 64) low |= uint64_t{1} << byte;
        else if (byte < 128) high |= uint64_t{1} << (byte - 64);
        else if (byte >= 0xC0) leads |= uint64_t{1} << (byte - 0xC0);
    }
    int ascii() const { return std::popcount(low) + std::popcount(high); }
};

/// How many characters begin in a text.
inline size_t count_chars(std::string_view text) {
    return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

/// Does the subtree below a node hold nothing but these characters?
inline bool within(const CharSet &below, const TrieNode &at, const CharSet &chars) { return below.within(chars) && (at.utf8_ok & 1); }

class Vocab {
  public:
    /// `tokens` are bytes by id; special and stop tokens are kept out of the trie.
    Vocab(std::vector<std::string> tokens, const std::vector<std::pair<std::string, uint32_t>> &special, std::vector<uint32_t> stops);

    uint32_t size() const { return static_cast<uint32_t>(tokens_.size()); }
    uint32_t mask_words() const { return (size() + 31) / 32; }
    /// What a token adds to the output: its bytes, or its text where it is special.
    std::string_view bytes(uint32_t token) const { return tokens_[token]; }
    /// Clears the bits of all tokens in which more than `most` characters begin; the mask is by rank.
    void keep_short(uint32_t most, uint64_t *ranks) const;
    bool in_trie(uint32_t token) const { return kind_[token] == Ordinary; }
    bool is_stop(uint32_t token) const { return kind_[token] == Stop; }
    const std::vector<uint32_t> &stops() const { return stops_; }
    uint32_t longest() const { return longest_; }

    const std::vector<TrieNode> &nodes() const { return nodes_; }  // the last one is a sentinel
    /// Which characters occur below a node; those that begin before it are left out.
    const std::vector<CharSet> &below() const { return below_; }
    /// The tokens of the trie in its order; the place of a token is its rank, kNone outside the trie.
    const std::vector<uint32_t> &order() const { return order_; }
    uint32_t rank(uint32_t token) const { return rank_[token]; }
    uint32_t rank_words() const { return static_cast<uint32_t>((order_.size() + 63) / 64); }
    /// The bytes from the root to a node.
    std::string_view path(uint32_t node) const { return {texts_.data() + text_at_[nodes_[node].first], nodes_[node].depth}; }
    /// Before the first child.
    Children children(uint32_t node) const { return {nodes_.data(), node + 1, nodes_[node].end}; }
    /// The child of the root by one byte: the root has hundreds of children, and in a literal only one of them fits.
    Children first_byte(uint8_t byte) const { return {nodes_.data(), root_children_[byte].first, root_children_[byte].second}; }

    /// The first token whose text is `text`, special ones before others; kNone where there is none.
    uint32_t find(std::string_view text) const;
    /// Special tokens whose text stands in `text` at `at`.
    void specials_at(std::string_view text, size_t at, std::vector<uint32_t> &out) const;
    /// Does some token of the trie go on behind these bytes?
    bool is_prefix(std::string_view bytes) const;
    size_t memory() const;

  private:
    enum TokenKind : uint8_t { Ordinary, Special, Stop, Empty };

    void sort_by_length();
    void build_trie();
    void describe_subtrees();

    std::vector<std::string> tokens_;
    std::vector<uint8_t> kind_;
    std::vector<uint16_t> chars_;                     // characters that begin in a token, by rank
    std::vector<uint32_t> by_chars_;                  // ranks, longest first
    std::vector<std::vector<uint64_t>> short_masks_;  // [n]: ranks of tokens of at most n characters
    std::vector<uint32_t> stops_;
    std::vector<std::pair<std::string, uint32_t>> special_;  // sorted by text
    uint32_t longest_ = 0;
    std::vector<TrieNode> nodes_;
    std::array<std::pair<uint32_t, uint32_t>, 256> root_children_{};  // by byte, and where their subtrees end
    std::vector<CharSet> below_;
    std::vector<uint32_t> order_, rank_;
    std::string texts_;              // of the trie, in its order: a walk reads them one after another
    std::vector<uint32_t> text_at_;  // by rank
};

}  // namespace dovetail
