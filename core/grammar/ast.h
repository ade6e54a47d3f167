// A rule's code as a tree, and the facts about it that need no vocabulary.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "grammar/code.h"
#include "grammar/rule.h"

namespace dovetail {

struct Ast {
    struct TokenName {
        uint32_t id;  // kNone where `text` names the token
        std::string_view text;
    };
    struct Arm {
        uint32_t node;      // kNone: that exit is not allowed here
        uint32_t trailing;  // bytes at the end of the call that its captures leave out
    };
    using Range = std::pair<uint32_t, uint32_t>;
    /// One state of a measured text.
    struct Stage {
        bool ends;
        std::vector<uint32_t> to;  // by edge; the characters are kids, those of earlier stages first
    };
    struct Lists {
        std::vector<std::string_view> names;  // Branch: captures; Without, Text: excludes
        std::vector<std::string_view> stops;  // Text
        std::vector<Arm> arms;                // Branch
        std::vector<TokenName> tokens;        // Tokens
        std::vector<bool> required;           // AnyOrder
        std::vector<Stage> stages;            // Measured
    };
    /// Small, because most rules are built once and never used: what few nodes have lies in pools.
    struct Node {
        Code op = Code::Seq;
        bool flag = false;      // Tokens: exclude; Without: nothing is left; AnyOrder: a separator leads; NewKey: grows
        uint32_t slot = 0;      // Call, Branch; Text: flags; AnyOrder: number of members
        uint32_t first = 0;     // into the pool of kids or ranges
        uint32_t count = 0;     // Tokens: 0 where the vocabulary has none of them
        uint32_t list = 0;      // into the pool of lists
        Counter bounds;         // Loop, Unroll, Count, Call, Branch
        std::string_view text;  // Lit, Special; Measured: end
    };

    std::vector<Node> nodes;
    uint32_t root = 0;
    bool counts_for_callers = false;  // what must come at least is theirs to say

    /// The views point into `code`, which must outlive the tree.
    explicit Ast(std::string_view code) { assign(code); }
    Ast() = default;
    /// Becomes the tree of other code, in the memory that it has.
    void assign(std::string_view code);

    /// Seq, Alt, the single child of loops and Without; of AnyOrder its members, perhaps an extra, separator, close; of Measured
    /// the characters.
    std::span<const uint32_t> kids(const Node &n) const { return {kids_.data() + n.first, n.count}; }
    /// Chars, Bytes.
    std::span<const Range> ranges(const Node &n) const { return {ranges_.data() + n.first, n.count}; }
    /// Branch, Tokens, Without, Text, AnyOrder, Measured.
    const Lists &lists(const Node &n) const { return lists_[n.list]; }
    /// The node behind exit 0 of a Branch, the only exit of a rule without stops.
    uint32_t first_arm(const Node &n) const {
        const std::vector<Arm> &arms = lists(n).arms;
        return arms.empty() ? kNone : arms[0].node;
    }

  private:
    uint32_t read(CodeReader &in, size_t depth);
    void adopt(Node &n, size_t base);
    void keep(Node &n, Lists lists);
    void read_lists(Node &n, CodeReader &in, size_t depth);
    void read_stages(Node &n, CodeReader &in, size_t depth);

    std::vector<uint32_t> kids_, open_;
    std::vector<Range> ranges_;
    std::vector<Lists> lists_;
};

/// What an analysis may ask about a callee.
struct CalleeFacts {
    bool nullable;
    bool productive;
};

/// The answers for the rules that a rule calls.
inline auto facts_of(const Rule &rule) {
    return [&rule](uint32_t slot, const Counter &bounds) {
        const Rule &callee = *rule.calls[slot];
        return CalleeFacts{callee.nullable[bounds.need > 0], callee.matches(bounds)};
    };
}

/// By state of a measured text: how many characters are needed at least to end it, kNone where it cannot end.
/// `live(node)` says of a character whether it can be matched.
template <class Live> std::vector<uint32_t> fewest_chars(const Ast &ast, const Ast::Node &n, const Live &live) {
    const std::vector<Ast::Stage> &stages = ast.lists(n).stages;
    std::vector<std::vector<uint32_t>> before(stages.size());
    std::vector<uint32_t> fewest(stages.size(), kNone), reached;
    auto kid = ast.kids(n).begin();
    for (uint32_t s = 0; s < stages.size(); ++s) {
        for (const uint32_t to : stages[s].to)
            if (live(*kid++)) before[to].push_back(s);
        if (!stages[s].ends) continue;
        fewest[s] = 0;
        reached.push_back(s);
    }
    for (size_t i = 0; i < reached.size(); ++i)
        for (const uint32_t s : before[reached[i]]) {
            if (fewest[s] != kNone) continue;
            fewest[s] = fewest[reached[i]] + 1;
            reached.push_back(s);
        }
    return fewest;
}

/// Can the tree match the empty string, or anything at all? `need` is whether its CountParam must repeat at least once;
/// `callee(slot, bounds)` answers for the rules that it calls.
template <class Callee> bool is_nullable(const Ast &ast, uint32_t at, bool need, const Callee &callee) {
    const Ast::Node &n = ast.nodes[at];
    switch (n.op) {
    case Code::Lit:
    case Code::Special: return n.text.empty();
    case Code::Seq:
        for (uint32_t k : ast.kids(n))
            if (!is_nullable(ast, k, need, callee)) return false;
        return true;
    case Code::Alt:
        for (uint32_t k : ast.kids(n))
            if (is_nullable(ast, k, need, callee)) return true;
        return false;
    case Code::Loop:
    case Code::Unroll:
    case Code::Count: return n.bounds.need == 0 || is_nullable(ast, ast.kids(n)[0], need, callee);
    case Code::CountParam: return !need || is_nullable(ast, ast.kids(n)[0], need, callee);
    case Code::Call: return callee(n.slot, n.bounds).nullable;
    case Code::Branch:
        return ast.first_arm(n) != kNone && callee(n.slot, n.bounds).nullable && is_nullable(ast, ast.first_arm(n), need, callee);
    case Code::Without: return is_nullable(ast, ast.kids(n)[0], need, callee);
    case Code::AnyOrder:
        for (uint32_t k = 0; k < n.slot; ++k)
            if (ast.lists(n).required[k] && !is_nullable(ast, ast.kids(n)[k], need, callee)) return false;
        return is_nullable(ast, ast.kids(n).back(), need, callee);
    case Code::Text: return (n.slot & kTextMayEnd) && !(need && (n.slot & kTextNeedsChars));
    case Code::NewKey: return true;
    default: return false;
    }
}

template <class Callee> bool is_productive(const Ast &ast, uint32_t at, bool need, const Callee &callee) {
    const Ast::Node &n = ast.nodes[at];
    switch (n.op) {
    case Code::Chars:
        // Surrogates are no characters.
        for (const auto &[low, high] : ast.ranges(n))
            if (low < 0xD800 || high > 0xDFFF) return true;
        return false;
    case Code::Bytes: return n.count > 0;
    case Code::Tokens: return n.count > 0;
    case Code::Seq:
        for (uint32_t k : ast.kids(n))
            if (!is_productive(ast, k, need, callee)) return false;
        return true;
    case Code::Alt:
        for (uint32_t k : ast.kids(n))
            if (is_productive(ast, k, need, callee)) return true;
        return false;
    case Code::Loop:
    case Code::Unroll:
    case Code::Count: return n.bounds.need == 0 || is_productive(ast, ast.kids(n)[0], need, callee);
    case Code::CountParam: return !need || is_productive(ast, ast.kids(n)[0], need, callee);
    case Code::Call: return callee(n.slot, n.bounds).productive;
    case Code::Branch:
        if (!callee(n.slot, n.bounds).productive) return false;
        for (const Ast::Arm &arm : ast.lists(n).arms)
            if (arm.node != kNone && is_productive(ast, arm.node, need, callee)) return true;
        return false;
    case Code::AnyOrder: {
        uint32_t separators = n.flag ? 1 : 0;  // as many required members do without one
        for (uint32_t k = 0; k < n.slot; ++k) {
            if (!ast.lists(n).required[k]) continue;
            if (!is_productive(ast, ast.kids(n)[k], need, callee)) return false;
            if (separators++ > 0 && !is_productive(ast, ast.kids(n)[n.count - 2], need, callee)) return false;
        }
        return is_productive(ast, ast.kids(n).back(), need, callee);
    }
    case Code::Without: return !n.flag && is_productive(ast, ast.kids(n)[0], need, callee);
    case Code::Measured: return fewest_chars(ast, n, [&](uint32_t kid) { return is_productive(ast, kid, need, callee); })[0] != kNone;
    case Code::Text: return (n.slot & kTextMayEnd) != 0 || !ast.lists(n).stops.empty();
    default: return true;
    }
}

/// The call slots that can be reached before any byte is consumed.
template <class Callee> void left_calls(const Ast &ast, uint32_t at, const Callee &callee, std::vector<uint32_t> &out) {
    const Ast::Node &n = ast.nodes[at];
    switch (n.op) {
    case Code::Seq:
        for (uint32_t k : ast.kids(n)) {
            left_calls(ast, k, callee, out);
            if (!is_nullable(ast, k, false, callee)) return;
        }
        return;
    case Code::Alt:
    case Code::Loop:
    case Code::Unroll:
    case Code::Count:
    case Code::CountParam:
    case Code::Without:
        for (uint32_t k : ast.kids(n)) left_calls(ast, k, callee, out);
        return;
    case Code::AnyOrder:
        for (uint32_t k : ast.kids(n)) left_calls(ast, k, callee, out);
        return;
    case Code::Call: out.push_back(n.slot); return;
    case Code::Branch:
        out.push_back(n.slot);
        if (ast.first_arm(n) != kNone && callee(n.slot, n.bounds).nullable) left_calls(ast, ast.first_arm(n), callee, out);
        return;
    default: return;
    }
}

}  // namespace dovetail
