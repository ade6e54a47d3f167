// The automaton of a measured text: each of its states knows how many more characters it needs, and the number of those
// that may still come is kept beside it, so that however many may come, the states are the same.
#include <bitset>

#include "automaton/nfa_builder.h"

namespace dovetail {

namespace {

/// The bytes that characters can begin with: those that stand for themselves, and those that lead to other spellings.
struct FirstBytes {
    std::bitset<256> unescaped, leads;

    /// False where a character may begin with something else than a byte.
    bool add(const Ast &ast, uint32_t at, bool leads_on = false) {
        const Ast::Node &n = ast.nodes[at];
        std::bitset<256> &bytes = leads_on ? leads : unescaped;
        switch (n.op) {
        case Code::Lit:
            if (n.text.empty()) return false;
            if (is_char(n.text)) bytes.set(static_cast<uint8_t>(n.text[0]));
            else leads.set(static_cast<uint8_t>(n.text[0]));
            return true;
        case Code::Chars:
            for (const auto &[low, high] : ast.ranges(n))
                for (uint32_t b = std::min(low, 0xC0u); b <= (high < 0x80 ? high : 0xFF); ++b) bytes.set(b);
            return true;
        case Code::Seq: return n.count > 0 && add(ast, ast.kids(n)[0], leads_on || n.count > 1);
        case Code::Alt: return std::all_of(ast.kids(n).begin(), ast.kids(n).end(), [&](uint32_t kid) { return add(ast, kid, leads_on); });
        default: return false;
        }
    }

  private:
    static bool is_char(std::string_view text) {
        uint8_t utf8 = 0;
        for (size_t i = 0; i < text.size(); ++i) {
            utf8 = utf8_next(utf8, static_cast<uint8_t>(text[i]));
            if (utf8 == kUtf8Bad || (utf8 == 0) != (i + 1 == text.size())) return false;
        }
        return true;
    }
};

}  // namespace

void check_measured(const Ast &ast) {
    const Ast::Node &root = ast.nodes[ast.root];
    if (root.op != Code::Measured) return;
    if (root.text.empty() || utf8_next(0, static_cast<uint8_t>(root.text[0])) == kUtf8Bad)
        throw InputError("measured text must end with something that begins with a character");
    FirstBytes first;
    for (const uint32_t character : ast.kids(root))
        if (!first.add(ast, character)) throw InputError("a character of measured text must begin with a byte");
    const auto end = static_cast<uint8_t>(root.text[0]);
    if (first.unescaped[end] || first.leads[end]) throw InputError("a character of measured text begins like its end");
    if ((first.unescaped & first.leads).any()) throw InputError("a character of measured text begins like another spelling");
}

uint32_t NfaBuilder::measured(const Rule &rule, const Ast &ast, const Ast::Node &n, uint32_t next) {
    const std::vector<Ast::Stage> &stages = ast.lists(n).stages;
    const std::vector<uint32_t> fewest = fewest_chars(ast, n, [&](uint32_t kid) { return is_productive(ast, kid, false, facts_of(rule)); });
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
            ways.push_back(literal(n.text, next));
            nfa_.measures.resize(nfa_.states.size());
            begin(begin, ways.back(), 0);
        }
        fill_split(starts[s], ways);
    }
    return starts[0];
}

}  // namespace dovetail
