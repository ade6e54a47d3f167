// The automaton of a measured text: each of its states knows how many more characters it needs, and the number of those
// that may still come is kept beside it, so that however many may come, the states are the same.
#include <bitset>

#include "nfa_builder.h"

namespace dovetail {

namespace {

/// The bytes that a character can begin with; false where it may begin with something else.
bool first_bytes(const Ast &ast, uint32_t at, std::bitset<256> &found) {
    const Ast::Node &n = ast.nodes[at];
    const auto begins = [&](uint32_t kid) { return first_bytes(ast, kid, found); };
    switch (n.op) {
    case Code::Lit:
        if (!n.text.empty()) found.set(static_cast<uint8_t>(n.text[0]));
        return !n.text.empty();
    case Code::Chars:
    case Code::Bytes:
        for (const auto &[low, high] : ast.ranges(n)) {
            const uint32_t last = n.op == Code::Chars && high >= 0x80 ? 0xFF : high;
            for (uint32_t b = low; b <= last; ++b) found.set(b);
        }
        return true;
    case Code::Seq: return n.count > 0 && begins(ast.kids(n)[0]);
    case Code::Alt: return std::all_of(ast.kids(n).begin(), ast.kids(n).end(), begins);
    default: return false;
    }
}

}  // namespace

void check_measured(const Ast &ast) {
    const Ast::Node &root = ast.nodes[ast.root];
    if (root.op != Code::Measured) return;
    if (root.text.empty()) throw InputError("measured text ends with nothing");
    std::bitset<256> first;
    for (const uint32_t character : ast.kids(root))
        if (!first_bytes(ast, character, first)) throw InputError("a character of measured text begins with a byte");
    if (first[static_cast<uint8_t>(root.text[0])]) throw InputError("a character of measured text begins like its end");
}

uint32_t NfaBuilder::measured(const Rule &rule, const Ast &ast, const Ast::Node &n, uint32_t next) {
    const std::vector<Ast::Stage> &stages = ast.lists(n).stages;
    const std::vector<uint32_t> fewest = fewest_chars(ast, n, [&](uint32_t kid) {
        return is_productive(ast, kid, false, facts_of(rule));
    });
    std::vector<uint32_t> starts, ways;
    for (size_t s = 0; s < stages.size(); ++s) starts.push_back(reserve_split());
    // What comes first in a state stands between characters, all else inside of one.
    const auto begin = [&](auto &self, uint32_t at, uint32_t needed) -> void {
        if (nfa_.states[at].kind != Nfa::Split) nfa_.measures[at] = {true, true, needed};
        else nfa_.successors(at, [&](uint32_t to) { self(self, to, needed); });
    };
    auto kid = ast.kids(n).begin();
    for (size_t s = 0; s < stages.size(); ++s) {
        ways.clear();
        for (const uint32_t to : stages[s].to) {
            const uint32_t character = *kid++;
            nfa_.measures.resize(nfa_.states.size());
            const uint32_t way = fewest[to] == kNone ? kDead : node(rule, ast, character, starts[to]);
            if (way == kDead) continue;
            nfa_.measures.resize(nfa_.states.size(), {true, false, fewest[to]});
            begin(begin, way, fewest[s]);
            ways.push_back(way);
            nfa_.room = std::max(nfa_.room, fewest[to]);
        }
        if (stages[s].ends) {
            ways.push_back(literal(n.text, false, next));
            nfa_.measures.resize(nfa_.states.size());
            begin(begin, ways.back(), 0);
        }
        fill_split(starts[s], ways);
    }
    nfa_.end = static_cast<uint8_t>(n.text[0]);
    return starts[0];
}

}  // namespace dovetail
