// Aho-Corasick over a few strings: which of them has just been completed?
#pragma once

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "base/common.h"

namespace dovetail {

class StringSet {
  public:
    explicit StringSet(const std::vector<std::string_view> &strings) {
        rows_.emplace_back();
        rows_[0].fill(0);
        hit_.push_back(false);
        for (std::string_view s : strings) insert(s);
        link();
    }

    uint32_t next(uint32_t node, uint8_t byte) const { return rows_[node][byte]; }
    /// One of the strings ends at this node.
    bool hit(uint32_t node) const { return hit_[node]; }
    /// Adds every byte on which `node` does not simply go back to the root.
    template <class Set> void telling_bytes(uint32_t node, Set &out) const {
        for (int b = 0; b < 256; ++b)
            if (rows_[node][static_cast<size_t>(b)] != 0) out.set(static_cast<size_t>(b));
    }

  private:
    void insert(std::string_view s) {
        uint32_t at = 0;
        for (const char c : s) {
            const auto b = static_cast<uint8_t>(c);
            if (rows_[at][b] == 0) {
                if (rows_.size() >= (1u << 18)) throw LimitError("the excluded strings have over 262,144 bytes");
                rows_[at][b] = static_cast<uint32_t>(rows_.size());
                rows_.emplace_back();
                rows_.back().fill(0);
                hit_.push_back(false);
            }
            at = rows_[at][b];
        }
        hit_[at] = true;
    }
    void link() {
        std::vector<uint32_t> fail(rows_.size(), 0), queue;
        for (uint32_t to : rows_[0])
            if (to) queue.push_back(to);
        for (size_t i = 0; i < queue.size(); ++i) {
            const uint32_t n = queue[i];
            if (hit_[fail[n]]) hit_[n] = true;
            for (size_t b = 0; b < 256; ++b) {
                uint32_t &to = rows_[n][b];
                const uint32_t back = rows_[fail[n]][b];
                // Rows below a node are still bare tries when it is visited: a link is deeper than its source.
                if (to == 0) {
                    to = back;
                } else {
                    fail[to] = back;
                    queue.push_back(to);
                }
            }
        }
    }

    std::vector<std::array<uint32_t, 256>> rows_;
    std::vector<bool> hit_;
};

}  // namespace dovetail
