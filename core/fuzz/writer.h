// Random rules of the shape that the encoder gives.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "grammar/code.h"

namespace dovetail {

class Random {
  public:
    explicit Random(uint64_t seed) : engine_(seed) {}

    uint32_t below(uint32_t n) { return n ? static_cast<uint32_t>(engine_() % n) : 0; }
    bool one_in(uint32_t n) { return below(n) == 0; }
    /// Mostly letters that grammars are likely to share, at times any byte.
    uint8_t byte() { return one_in(8) ? static_cast<uint8_t>(engine_()) : static_cast<uint8_t>("ab<>\"{}1 \xc3\xa9\xf0,\\:"[below(15)]); }
    std::string text(uint32_t longest) {
        std::string s;
        for (uint32_t n = below(longest + 1); n > 0; --n) s.push_back(static_cast<char>(byte()));
        return s;
    }
    /// Well-formed UTF-8, not empty, as free text and its stops are.
    std::string word() {
        std::string s;
        static constexpr const char *kLetters[] = {"<", "a", "b", ">", "\xc3\xa9", "\xf0\x9f\x99\x82"};
        for (uint32_t n = 1 + below(3); n > 0; --n) s += kLetters[below(6)];
        return s;
    }
    /// Small numbers mostly, sometimes one at the edge of what a counter holds.
    uint32_t number() {
        static constexpr uint32_t kEdges[] = {15, 16, 17, 255, 256, 65536, 1u << 30, UINT32_MAX - 1, UINT32_MAX};
        return one_in(10) ? kEdges[below(9)] : below(4);
    }

  private:
    std::mt19937_64 engine_;
};

/// What callers of a rule have to know.
struct Signature {
    bool is_text = false;
    bool has_param = false;  // callers pass the bounds of its repetition
    bool any_order = false;  // its frame keeps a set
    bool measured = false;   // its frame counts characters
    uint32_t flags = 0;      // of a text
    std::vector<std::string> stops;

    static Signature draw(Random &random, bool root) {
        Signature s;
        s.is_text = !root && random.one_in(3);
        s.any_order = !s.is_text && random.one_in(5);
        s.measured = !root && !s.is_text && !s.any_order && random.one_in(5);
        s.has_param = !s.is_text && !s.any_order && !s.measured && random.one_in(4);
        if (!s.is_text) return s;
        s.flags = random.one_in(8) ? kTextNone : random.below(16);
        if (s.flags & kTextCountsTokens) s.flags &= ~uint32_t{kTextNeedsChars};
        else
            for (uint32_t n = random.below(4); n > 0; --n) s.stops.push_back(random.word());
        return s;
    }
    Counter bounds(Random &random) const {
        if (any_order) return {};
        if (measured) {
            const uint32_t left = random.one_in(3) ? kUnbounded : 1 + random.below(9);
            return {left, random.below(std::min(left, 5u))};
        }
        if (!is_text && !has_param) return {kUnbounded, 0};
        if (has_param) return random_bounds(random);
        Counter c{kUnbounded, 0};
        if (flags & kTextCountsChars) c.left = random.below(6);
        if (flags & (kTextCountsTokens | kTextNeedsChars)) c.need = std::min(random.below(4), c.left);
        return c;
    }
    static Counter random_bounds(Random &random) {
        Counter c;
        c.need = random.number();
        c.left = random.one_in(4) ? kUnbounded : random.number();
        if (c.left < c.need) std::swap(c.left, c.need);
        if (c.need > 1u << 30) c.need = 7;
        return c;
    }
};

/// Writes rules of the shape that the encoder gives, so that everything behind it is reached and every promise holds.
class Writer {
  public:
    Writer(Random &random, std::vector<const Signature *> callees) : random_(random), callees_(std::move(callees)) {}

    std::string rule(const Signature &self) {
        if (self.is_text) {
            w_.op(Code::Text);
            w_.number(self.flags);
            words();
            w_.number(self.stops.size());
            for (const std::string &s : self.stops) w_.text(s);
            return std::move(code_);
        }
        if (self.has_param) {
            counting_ = true;  // a frame has one counter, and callers set it
            w_.op(Code::Seq);
            w_.number(3);
            node(1);
            w_.op(Code::CountParam);
            node(2);
            node(1);
        } else if (self.any_order) {
            any_order();
        } else if (self.measured) {
            measured();
        } else {
            node(1 + random_.below(4));
        }
        return std::move(code_);
    }

  private:
    void node(uint32_t depth) {
        switch (random_.below(depth ? 13 : 5)) {
        case 0: w_.op(Code::Lit); return w_.text(random_.text(4));
        case 1: w_.op(Code::Special); return w_.text(random_.one_in(2) ? "<s>" : random_.text(4));
        case 2: return ranges(Code::Chars, random_.one_in(3) ? 0x10FFFF : 0x17F);
        case 3: return ranges(Code::Bytes, 0xFF);
        case 4: return tokens();
        case 5:
        case 6: return several(random_.one_in(2) ? Code::Seq : Code::Alt, depth);
        case 7:
            w_.op(Code::Loop);
            w_.number(random_.below(3));
            return node(depth - 1);
        case 8: return unroll(depth);
        case 9: return count(depth);
        case 10: return call(depth);
        case 11: return key(depth);
        default: return without(depth);
        }
    }
    void any_order() {
        counting_ = true;  // a frame that keeps a set keeps no count
        w_.op(Code::AnyOrder);
        w_.number(random_.below(2));
        const uint32_t n = random_.below(5);
        w_.number(n);
        for (uint32_t i = 0; i < n; ++i) {
            w_.number(random_.below(2));
            node(2);
        }
        const bool extra = random_.one_in(2);
        w_.number(extra ? 1 : 0);
        if (extra) node(1);
        node(1);
        node(1);
        counting_ = false;
    }
    /// Where a text may end it goes on to where it may end, so that it can be as long as it must.
    void measured() {
        w_.op(Code::Measured);
        w_.text(random_.one_in(2) ? "\"" : ">a");
        std::vector<bool> ends(1 + random_.below(4));
        for (size_t i = 0; i < ends.size(); ++i) ends[i] = random_.one_in(2);
        w_.number(ends.size());
        for (size_t i = 0; i < ends.size(); ++i) {
            const uint32_t edges = random_.below(3);
            w_.number(ends[i] ? 1 : 0);
            w_.number(edges + (ends[i] ? 1 : 0));
            for (uint32_t k = 0; k < edges; ++k) {
                w_.number(random_.below(static_cast<uint32_t>(ends.size())));
                character();
            }
            if (!ends[i]) continue;
            w_.number(i);
            character();
        }
    }
    void character() {
        const bool escaped = random_.one_in(3);
        if (escaped) {
            w_.op(Code::Alt);
            w_.number(2);
            w_.op(Code::Seq);
            w_.number(2);
            w_.op(Code::Lit), w_.text("\\");
            w_.op(Code::Lit), w_.text(random_.one_in(2) ? "a" : "u1");
        }
        w_.op(Code::Chars);
        const bool wide = random_.one_in(2);
        w_.number(wide ? 2 : 1);
        w_.number('a'), w_.number('a' + random_.below(26));
        if (wide) w_.number(0xA0), w_.number(0xA0 + random_.below(0x10000));
    }
    void several(Code op, uint32_t depth) {
        w_.op(op);
        const uint32_t n = random_.below(4);
        w_.number(n);
        for (uint32_t i = 0; i < n; ++i) node(depth - 1);
    }
    void unroll(uint32_t depth) {
        Counter c{1 + random_.below(5), 0};
        c.need = random_.below(c.left + 1);
        w_.op(Code::Unroll);
        w_.bounds(c);
        node(depth - 1);
    }
    void count(uint32_t depth) {
        if (counting_) return unroll(depth);
        counting_ = true;
        w_.op(Code::Count);
        w_.bounds(Signature::random_bounds(random_));
        node(depth - 1);
        counting_ = false;
    }
    void without(uint32_t depth) {
        if (bare_) return several(Code::Alt, depth);
        bare_ = true;  // no calls and no tokens inside
        w_.op(Code::Without);
        words();
        node(depth - 1);
        bare_ = false;
    }
    void ranges(Code op, uint32_t top) {
        w_.op(op);
        std::vector<uint32_t> ends;
        for (uint32_t n = 2 * random_.below(4); n > 0; --n)
            ends.push_back(random_.one_in(2) ? random_.below(top + 1) : 'a' + random_.below(26));
        std::sort(ends.begin(), ends.end());
        ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
        if (ends.size() % 2) ends.push_back(ends.back());
        w_.number(ends.size() / 2);
        for (uint32_t end : ends) w_.number(end);
    }
    void tokens() {
        if (bare_) return ranges(Code::Bytes, 0xFF);
        w_.op(Code::Tokens);
        w_.number(random_.one_in(3) ? 1 : 0);
        const uint32_t n = random_.below(4);
        w_.number(n);
        for (uint32_t i = 0; i < n; ++i) {
            const bool by_text = random_.one_in(4);
            w_.number(by_text ? 1 : 0);
            if (by_text) w_.text("<s>");
            else w_.number(random_.below(60));
        }
    }
    void call(uint32_t depth) {
        if (callees_.empty() || bare_) return several(Code::Seq, depth);
        const uint32_t slot = random_.below(static_cast<uint32_t>(callees_.size()));
        const Signature &callee = *callees_[slot];
        const bool branch = callee.is_text || random_.one_in(3);
        w_.op(branch ? Code::Branch : Code::Call);
        w_.number(slot);
        w_.bounds(callee.bounds(random_));
        if (!branch) return;
        words();  // captures
        w_.number(callee.stops.size() + 1);
        for (size_t i = 0; i <= callee.stops.size(); ++i) {
            const bool present = i > 0 || !callee.is_text || (callee.flags & kTextMayEnd);
            w_.number(present ? 1 : 0);
            w_.number(i ? callee.stops[i - 1].size() : 0);
            if (present) node(depth - 1);
        }
    }
    void key(uint32_t depth) {
        if (bare_) return several(Code::Seq, depth);
        w_.op(Code::Seq);
        const bool colon = !random_.one_in(3);
        w_.number(colon ? 5 : 4);
        w_.op(Code::Lit);
        w_.text(random_.one_in(3) ? "{\"" : random_.one_in(2) ? ",\"" : "\"");
        const bool grows = random_.one_in(2);
        w_.op(grows ? Code::Loop : Code::Unroll);
        if (grows) w_.number(0);
        else w_.bounds({random_.below(3), 0});
        ranges(Code::Chars, 0x7F);
        w_.op(Code::Lit), w_.text("\"");
        w_.op(Code::NewKey), w_.number(grows ? 1 : 0);
        if (!colon) return;
        w_.op(Code::Lit);
        w_.text(random_.one_in(2) ? ":" : ":1");
    }
    void words() {
        const uint32_t n = random_.below(3);
        w_.number(n);
        for (uint32_t i = 0; i < n; ++i) w_.text(random_.word());
    }

    Random &random_;
    std::vector<const Signature *> callees_;
    bool counting_ = false, bare_ = false;
    std::string code_;
    CodeWriter w_{code_};
};

}  // namespace dovetail
