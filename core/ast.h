// A rule's code as a tree, and the facts about it that need no vocabulary.
#pragma once

#include <string_view>
#include <vector>

#include "code.h"

namespace dovetail {

struct Ast {
    struct TokenName {
        uint32_t id;            // kNone where `text` names the token
        std::string_view text;
    };
    struct Arm {
        uint32_t node;      // kNone: that exit is not allowed here
        uint32_t trailing;  // bytes at the end of the call that its captures leave out
    };
    struct Node {
        Code op;
        bool flag = false;                                  // Tokens: exclude
        uint32_t slot = 0;                                  // Call, Branch; Text: flags
        Counter bounds;                                     // Loop, Unroll, Count, Call, Branch
        std::string_view text;                              // Lit, Special
        std::vector<uint32_t> kids;                         // Seq, Alt, and the single child of the others
        std::vector<std::pair<uint32_t, uint32_t>> ranges;  // Chars, Bytes
        std::vector<std::string_view> names;                // Branch: captures; Without, Text: excludes
        std::vector<std::string_view> stops;                // Text
        std::vector<Arm> arms;                              // Branch
        std::vector<TokenName> tokens;                      // Tokens
    };

    std::vector<Node> nodes;
    uint32_t root = 0;

    /// The views point into `code`, which must outlive the tree.
    explicit Ast(std::string_view code);

  private:
    uint32_t read(CodeReader &in, size_t depth);
};

/// What an analysis may ask about a callee.
struct CalleeFacts {
    bool nullable;
    bool productive;
};

/// Can the tree match the empty string, or anything at all? `need` is whether its CountParam must repeat at least once;
/// `callee(slot, bounds)` answers for the rules that it calls.
template <class Callee> bool is_nullable(const Ast &ast, uint32_t at, bool need, const Callee &callee) {
    const Ast::Node &n = ast.nodes[at];
    switch (n.op) {
    case Code::Lit:
    case Code::Special: return n.text.empty();
    case Code::Seq:
        for (uint32_t k : n.kids)
            if (!is_nullable(ast, k, need, callee)) return false;
        return true;
    case Code::Alt:
        for (uint32_t k : n.kids)
            if (is_nullable(ast, k, need, callee)) return true;
        return false;
    case Code::Loop:
    case Code::Unroll:
    case Code::Count: return n.bounds.need == 0 || is_nullable(ast, n.kids[0], need, callee);
    case Code::CountParam: return !need || is_nullable(ast, n.kids[0], need, callee);
    case Code::Call: return callee(n.slot, n.bounds).nullable;
    case Code::Branch:
        return !n.arms.empty() && n.arms[0].node != kNone && callee(n.slot, n.bounds).nullable &&
               is_nullable(ast, n.arms[0].node, need, callee);
    case Code::Without: return is_nullable(ast, n.kids[0], need, callee);
    case Code::Text: return (n.slot & kTextMayEnd) != 0;
    default: return false;
    }
}

template <class Callee> bool is_productive(const Ast &ast, uint32_t at, bool need, const Callee &callee) {
    const Ast::Node &n = ast.nodes[at];
    switch (n.op) {
    case Code::Chars:
    case Code::Bytes: return !n.ranges.empty();
    case Code::Seq:
        for (uint32_t k : n.kids)
            if (!is_productive(ast, k, need, callee)) return false;
        return true;
    case Code::Alt:
        for (uint32_t k : n.kids)
            if (is_productive(ast, k, need, callee)) return true;
        return false;
    case Code::Loop:
    case Code::Unroll:
    case Code::Count: return n.bounds.need == 0 || is_productive(ast, n.kids[0], need, callee);
    case Code::CountParam: return !need || is_productive(ast, n.kids[0], need, callee);
    case Code::Call: return callee(n.slot, n.bounds).productive;
    case Code::Branch:
        if (!callee(n.slot, n.bounds).productive) return false;
        for (const Ast::Arm &arm : n.arms)
            if (arm.node != kNone && is_productive(ast, arm.node, need, callee)) return true;
        return false;
    case Code::Without: return is_productive(ast, n.kids[0], need, callee);
    case Code::Text: return (n.slot & kTextMayEnd) != 0 || !n.stops.empty();
    default: return true;
    }
}

/// The call slots that can be reached before any byte is consumed.
template <class Callee>
void left_calls(const Ast &ast, uint32_t at, const Callee &callee, std::vector<uint32_t> &out) {
    const Ast::Node &n = ast.nodes[at];
    switch (n.op) {
    case Code::Seq:
        for (uint32_t k : n.kids) {
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
        for (uint32_t k : n.kids) left_calls(ast, k, callee, out);
        return;
    case Code::Call: out.push_back(n.slot); return;
    case Code::Branch:
        out.push_back(n.slot);
        if (!n.arms.empty() && n.arms[0].node != kNone && callee(n.slot, n.bounds).nullable)
            left_calls(ast, n.arms[0].node, callee, out);
        return;
    default: return;
    }
}

}  // namespace dovetail
