// Builds the trie of tokens.

#include "vocabulary/vocab.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace dovetail {

namespace {

constexpr uint32_t kMaxTokens = 1u << 24;
constexpr uint32_t kShortMasks = 24;     // longer tokens are so few that they are cleared one by one
constexpr size_t kMaxTokenBytes = 4096;  // the walk keeps one set of states per byte of the longest token

std::array<std::array<uint8_t, 256>, 8> make_utf8_table() {
    std::array<std::array<uint8_t, 256>, 8> t;
    for (auto &row : t) row.fill(kUtf8Bad);
    auto set = [&](int state, int low, int high, uint8_t to) {
        for (int b = low; b <= high; ++b) t[static_cast<size_t>(state)][static_cast<size_t>(b)] = to;
    };
    // 1, 2, 3: that many free continuation bytes; 4..7: the second byte after E0, ED, F0, F4.
    set(0, 0x00, 0x7F, 0);
    set(0, 0xC2, 0xDF, 1);
    set(0, 0xE1, 0xEC, 2);
    set(0, 0xEE, 0xEF, 2);
    set(0, 0xF1, 0xF3, 3);
    set(0, 0xE0, 0xE0, 4);
    set(0, 0xED, 0xED, 5);
    set(0, 0xF0, 0xF0, 6);
    set(0, 0xF4, 0xF4, 7);
    set(1, 0x80, 0xBF, 0);
    set(2, 0x80, 0xBF, 1);
    set(3, 0x80, 0xBF, 2);
    set(4, 0xA0, 0xBF, 1);
    set(5, 0x80, 0x9F, 1);
    set(6, 0x90, 0xBF, 2);
    set(7, 0x80, 0x8F, 2);
    return t;
}

const auto kUtf8 = make_utf8_table();

}  // namespace

uint8_t utf8_next(uint8_t state, uint8_t byte) { return kUtf8[state][byte]; }

Vocab::Vocab(std::vector<std::string> tokens, const std::vector<std::pair<std::string, uint32_t>> &special, std::vector<uint32_t> stops)
    : tokens_(std::move(tokens)), stops_(std::move(stops)), special_(special) {
    if (tokens_.empty() || tokens_.size() > kMaxTokens) throw InputError("a vocabulary needs 1 to 16,777,216 tokens");
    kind_.assign(tokens_.size(), Ordinary);
    for (size_t i = 0; i < tokens_.size(); ++i)
        if (tokens_[i].empty()) kind_[i] = Empty;
    for (const auto &[text, id] : special_) {
        if (id >= tokens_.size()) throw InputError("special token id " + std::to_string(id) + " is out of range");
        kind_[id] = Special;
        tokens_[id] = text;
    }
    for (uint32_t id : stops_) {
        if (id >= tokens_.size()) throw InputError("stop token id " + std::to_string(id) + " is out of range");
        kind_[id] = Stop;
    }
    std::sort(stops_.begin(), stops_.end());
    stops_.erase(std::unique(stops_.begin(), stops_.end()), stops_.end());
    std::sort(special_.begin(), special_.end());
    for (const std::string &t : tokens_) {
        if (t.size() > kMaxTokenBytes) throw InputError("a token is longer than 4096 bytes");
        longest_ = std::max(longest_, static_cast<uint32_t>(t.size()));
    }
    build_trie();
    sort_by_length();
    describe_subtrees();
    for (Children c = children(0); c.next();) root_children_[c.byte] = {c.node, c.end};
}

void Vocab::sort_by_length() {
    for (uint32_t id : order_) {
        const std::string &t = tokens_[id];
        chars_.push_back(static_cast<uint16_t>(std::count_if(t.begin(), t.end(), [](char c) { return (c & 0xC0) != 0x80; })));
    }
    by_chars_.resize(order_.size());
    std::iota(by_chars_.begin(), by_chars_.end(), 0u);
    std::stable_sort(by_chars_.begin(), by_chars_.end(), [this](uint32_t a, uint32_t b) { return chars_[a] > chars_[b]; });
    std::vector<uint64_t> mask(rank_words());
    auto next = by_chars_.rbegin();
    for (uint32_t n = 0; n < kShortMasks; ++n) {
        for (; next != by_chars_.rend() && chars_[*next] <= n; ++next) mask[*next / 64] |= uint64_t{1} << (*next % 64);
        short_masks_.push_back(mask);
    }
}

void Vocab::keep_short(uint32_t most, uint64_t *ranks) const {
    if (most < kShortMasks) {
        const std::vector<uint64_t> &keep = short_masks_[most];
        for (size_t i = 0; i < keep.size(); ++i) ranks[i] &= keep[i];
        return;
    }
    for (uint32_t r : by_chars_) {
        if (chars_[r] <= most) break;
        ranks[r / 64] &= ~(uint64_t{1} << (r % 64));
    }
}

void Vocab::build_trie() {
    for (uint32_t id = 0; id < size(); ++id)
        if (kind_[id] == Ordinary) order_.push_back(id);
    std::sort(order_.begin(), order_.end(), [this](uint32_t a, uint32_t b) {
        const int c = tokens_[a].compare(tokens_[b]);
        return c != 0 ? c < 0 : a < b;
    });
    rank_.assign(size(), kNone);
    for (uint32_t rank = 0; rank < order_.size(); ++rank) rank_[order_[rank]] = rank;
    text_at_.reserve(order_.size());
    for (uint32_t id : order_) {
        if (texts_.size() > UINT32_MAX - kMaxTokenBytes) throw LimitError("the tokens have more than 4 GiB together");
        text_at_.push_back(static_cast<uint32_t>(texts_.size()));
        texts_ += tokens_[id];
    }
    texts_.shrink_to_fit();
    std::vector<uint32_t> path{0};  // nodes from the root to the last token's
    nodes_.push_back({});
    std::string_view previous;
    for (uint32_t rank = 0; rank < order_.size(); ++rank) {
        const std::string_view token = tokens_[order_[rank]];
        size_t common = 0;
        while (common < previous.size() && common < token.size() && previous[common] == token[common]) ++common;
        while (path.size() > common + 1) {
            nodes_[path.back()].end = static_cast<uint32_t>(nodes_.size());
            path.pop_back();
        }
        for (size_t i = common; i < token.size(); ++i) {
            path.push_back(static_cast<uint32_t>(nodes_.size()));
            nodes_.push_back({0, rank, static_cast<uint8_t>(token[i]), 0, static_cast<uint16_t>(i + 1)});
        }
        previous = token;
    }
    for (uint32_t n : path) nodes_[n].end = static_cast<uint32_t>(nodes_.size());
    nodes_.push_back({static_cast<uint32_t>(nodes_.size() + 1), static_cast<uint32_t>(order_.size()), 0, 0, 0});
}

void Vocab::describe_subtrees() {
    const uint32_t count = static_cast<uint32_t>(nodes_.size() - 1);
    below_.resize(count);
    for (uint32_t n = count; n-- > 0;) {
        TrieNode &node = nodes_[n];
        CharSet &below = below_[n];
        node.utf8_ok = 0xFF;
        for (Children c = children(n); c.next();) {
            const TrieNode &child = nodes_[c.node];
            uint8_t ok = 0;
            for (uint8_t s = 0; s < 8; ++s) {
                const uint8_t next = utf8_next(s, child.byte);
                if (next != kUtf8Bad && (child.utf8_ok >> next & 1)) ok |= static_cast<uint8_t>(1u << s);
            }
            node.utf8_ok &= ok;
            below.low |= below_[c.node].low;
            below.high |= below_[c.node].high;
            below.leads |= below_[c.node].leads;
            below.add(child.byte);
        }
    }
}

uint32_t Vocab::find(std::string_view text) const {
    const auto it =
        std::lower_bound(special_.begin(), special_.end(), text, [](const auto &entry, std::string_view t) { return entry.first < t; });
    if (it != special_.end() && it->first == text) return it->second;
    for (uint32_t id = 0; id < size(); ++id)
        if (tokens_[id] == text && !text.empty()) return id;
    return kNone;
}

void Vocab::specials_at(std::string_view text, size_t at, std::vector<uint32_t> &out) const {
    const std::string_view rest = text.substr(at);
    auto first = special_.begin(), last = special_.end();
    // Each byte narrows the texts down to those that begin like `rest`; an exact match is the first of them.
    for (size_t n = 1; n <= rest.size() && first != last; ++n) {
        const auto byte = static_cast<uint8_t>(rest[n - 1]);
        const auto at_byte = [n](const auto &entry) { return entry.first.size() < n ? -1 : static_cast<uint8_t>(entry.first[n - 1]); };
        first = std::partition_point(first, last, [&](const auto &entry) { return at_byte(entry) < byte; });
        last = std::partition_point(first, last, [&](const auto &entry) { return at_byte(entry) <= byte; });
        for (auto it = first; it != last && it->first.size() == n; ++it) out.push_back(it->second);
    }
}

bool Vocab::is_prefix(std::string_view bytes) const {
    uint32_t node = 0;
    for (const char c : bytes) {
        Children below = children(node);
        do {
            if (!below.next()) return false;
        } while (below.byte != static_cast<uint8_t>(c));
        node = below.node;
    }
    return nodes_[node].end > node + 1;
}

size_t Vocab::memory() const {
    size_t bytes = by_chars_.size() * 6 + short_masks_.size() * rank_words() * 8 + order_.size() * 4 + rank_.size() * 4;
    bytes += nodes_.size() * (sizeof(TrieNode) + sizeof(CharSet)) + texts_.size() + text_at_.size() * 4;
    for (const std::string &t : tokens_) bytes += sizeof(std::string) + (t.size() > 15 ? t.size() : 0);
    return bytes;
}

}  // namespace dovetail
