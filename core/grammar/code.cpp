// Reads and checks the code of a rule; saved grammars may be hostile.

#include "grammar/code.h"

#include "grammar/ast.h"

namespace dovetail {

namespace {

constexpr std::string_view kMagic = "DVTL\x03";

/// Refuses what no encoder writes, so that a saved grammar cannot hold code that the builders would trip over.
void check(const Ast &ast, size_t calls) {
    for (uint32_t at = 0; at < ast.nodes.size(); ++at) {
        const Ast::Node &n = ast.nodes[at];
        const bool has_ranges = n.op == Code::Chars || n.op == Code::Bytes;
        if ((n.op == Code::Call || n.op == Code::Branch) && n.slot >= calls)
            throw InputError("grammar code calls a rule that is not there");
        if ((n.op == Code::AnyOrder || n.op == Code::Measured || n.op == Code::Text) && at != ast.root)
            throw InputError("free text, measured text and members in any order in grammar code must be rules of their own");
        for (const auto &[low, high] : has_ranges ? ast.ranges(n) : std::span<const Ast::Range>())
            if (low > high || high > (n.op == Code::Bytes ? 0xFF : 0x10FFFF)) throw InputError("a class in grammar code has a bad range");
    }
}

}  // namespace

std::string save_program(const Program &program) {
    std::string saved(kMagic);
    CodeWriter w(saved);
    w.bounds(program.init);
    w.number(program.rules.size());
    for (const RuleCode &r : program.rules) {
        w.text(r.code);
        w.number(r.calls.size());
        for (uint32_t c : r.calls) w.number(c);
    }
    return saved;
}

Program load_program(std::string_view bytes) {
    if (bytes.substr(0, kMagic.size()) != kMagic) throw InputError("these bytes are not a grammar saved by this version of dovetail");
    CodeReader in(bytes.substr(kMagic.size()));
    Program program;
    program.init = in.bounds();
    program.rules.resize(in.count());
    const size_t count = program.rules.size();
    if (count == 0 || count > kMaxRules) throw InputError("a saved grammar needs 1 to 1,048,576 rules");
    for (RuleCode &r : program.rules) {
        r.code = std::string(in.text());
        r.calls.resize(in.count());
        for (uint32_t &c : r.calls) {
            c = in.number32();
            if (c >= count) throw InputError("a saved grammar calls a rule that is not there");
        }
        check(Ast(r.code), r.calls.size());
    }
    if (!in.done()) throw InputError("a saved grammar has bytes after its end");
    return program;
}

}  // namespace dovetail
