// The compact form of a rule: one byte string that crosses from Python, is hashed for interning and is saved to disk.
//
// A node is an opcode followed by its fields; integers are LEB128, strings a length and bytes:
//   Lit s | Special s
//   Chars n (lo hi)* | Bytes n (lo hi)*
//   Seq n node* | Alt n node*
//   Loop low node          low or more times, unrolled up to low
//   Unroll low high node   small bounds, copied out
//   Count low high node    large bounds, kept in the counter of the frame; high + 1, 0 is unbounded
//   CountParam node        the same, with bounds that the caller passes: rules that differ in bounds alone are one rule
//   Call slot low high     calls[slot], with the bounds for its CountParam
//   Branch slot low high captures-n s* arms-n (present trailing [node])*
//                          call, then continue by the exit that the callee took
//   Measured end-s n (ends edges-n (state node)*)*
//                          only as the whole body of a rule: a text along the edges of an automaton from its first
//                          state, each a character, and the end behind it; the caller passes how many characters there
//                          must be and one more than there may be
//   Tokens exclude n (0 id | 1 s)*
//   Without n s* node
//   NewKey grows           nothing, behind the end of a JSON key: its object has no such key yet; grows: wherever such a
//                          key breaks off, infinitely many go on
//   AnyOrder started n (required node)* has-extra [node] node node
//                          only as the whole body of a rule: members, something between, separator, close
//   Text flags excludes-n s* stops-n s*      only as the whole body of a rule; exit 0 is a free end, k + 1 stop k;
//                          the caller passes how many characters there may be, and how many tokens, or how many
//                          characters there must be; with kTextNone there are stops and nothing before them
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/common.h"

namespace dovetail {

enum class Code : uint8_t {
    Lit = 1,
    Special,
    Chars,
    Bytes,
    Seq,
    Alt,
    Loop,
    Unroll,
    Count,
    CountParam,
    Call,
    Branch,
    Tokens,
    Without,
    Text,
    AnyOrder,
    NewKey,
    Measured,
};

enum TextFlags : uint32_t { kTextMayEnd = 1, kTextCountsChars = 2, kTextCountsTokens = 4, kTextNeedsChars = 8, kTextNone = 16 };

inline constexpr size_t kMaxDepth = 2000;           // nesting of nodes in one rule
inline constexpr size_t kMaxCodeBytes = 64u << 20;  // one rule
inline constexpr size_t kMaxRules = 1u << 20;
inline constexpr size_t kMaxMembers = 4096;  // of AnyOrder

struct Rule;
struct Unit;

/// A rule as it crosses: its code and, for every call slot, the index of the callee; or one that the store has.
struct RuleCode {
    std::string code;
    std::vector<uint32_t> calls;
    Rule *known = nullptr;
    uint32_t held = kNone;  // the place of its unit in Program::held
};

/// A whole grammar; rule 0 is the root and `init` are the bounds for its CountParam.
struct Program {
    std::vector<RuleCode> rules;
    Counter init;
    std::vector<std::shared_ptr<Unit>> held;  // of the known rules; dropped under the lock of the store
};

/// Appends to a string of code.
class CodeWriter {
  public:
    explicit CodeWriter(std::string &out) : out(out) {}

    void bounds(Counter c) {
        number(c.need);
        number(c.left == kUnbounded ? 0 : uint64_t{c.left} + 1);
    }
    void op(Code c) { out.push_back(static_cast<char>(c)); }
    void number(uint64_t v) {
        while (v >= 0x80) {
            out.push_back(static_cast<char>(v | 0x80));
            v >>= 7;
        }
        out.push_back(static_cast<char>(v));
    }
    void text(std::string_view s) {
        number(s.size());
        out.append(s);
    }
    void ranges(const Ranges &ranges) {
        number(ranges.size());
        for (const auto &[low, high] : ranges) {
            number(low);
            number(high);
        }
    }

  private:
    std::string &out;
};

/// Reads code that may be hostile: every step is checked.
class CodeReader {
  public:
    explicit CodeReader(std::string_view code) : code_(code) {}

    bool done() const { return at_ == code_.size(); }
    Code op() { return static_cast<Code>(byte()); }
    uint8_t byte() {
        if (at_ >= code_.size()) throw InputError("grammar code ends in the middle of a node");
        return static_cast<uint8_t>(code_[at_++]);
    }
    uint64_t number() {
        uint64_t v = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            const uint8_t b = byte();
            v |= static_cast<uint64_t>(b & 0x7f) << shift;
            if (!(b & 0x80)) return v;
        }
        throw InputError("a number in grammar code is too long");
    }
    uint32_t number32() {
        const uint64_t v = number();
        if (v > UINT32_MAX) throw InputError("a number in grammar code is too large");
        return static_cast<uint32_t>(v);
    }
    /// A count of things that take at least one byte each.
    uint32_t count() {
        const uint64_t n = number();
        if (n > code_.size() - at_) throw InputError("a count in grammar code is too large");
        return static_cast<uint32_t>(n);
    }
    std::string_view text() {
        const uint32_t n = count();
        const std::string_view s = code_.substr(at_, n);
        at_ += n;
        return s;
    }
    /// Bounds are written as low and high + 1, where 0 is unbounded.
    Counter bounds() {
        Counter c;
        c.need = number32();
        const uint32_t high = number32();
        c.left = high == 0 ? kUnbounded : high - 1;
        return c;
    }
    Counter repetition() {
        const Counter c = bounds();
        if (c.left < c.need) throw InputError("a repetition in grammar code has its bounds reversed");
        return c;
    }
    size_t position() const { return at_; }
    void seek(size_t at) { at_ = at; }

  private:
    std::string_view code_;
    size_t at_ = 0;
};

/// The whole table as versioned bytes, and back; `load` checks everything that it reads.
std::string save_program(const Program &program);
Program load_program(std::string_view bytes);

}  // namespace dovetail
