#include "code.h"

namespace dovetail {

namespace {

constexpr std::string_view kMagic = "DVTL\x03";

void check_ranges(CodeReader &in, uint32_t most) {
    for (uint32_t n = in.count(); n > 0; --n) {
        const uint32_t low = in.number32(), high = in.number32();
        if (low > high || high > most) throw InputError("a class in grammar code has a bad range");
    }
}

/// Walks one node, so that a saved grammar cannot hold code that the builders would trip over.
void check_node(CodeReader &in, size_t calls, size_t depth) {
    if (depth > kMaxDepth) throw LimitError("grammar nodes are nested deeper than 2000 levels");
    const Code op = in.op();
    switch (op) {
    case Code::Lit:
    case Code::Special:
        in.text();
        return;
    case Code::NewKey: in.byte(); return;
    case Code::Chars:
    case Code::Bytes: return check_ranges(in, op == Code::Bytes ? 0xFF : 0x10FFFF);
    case Code::Seq:
    case Code::Alt:
        for (uint32_t n = in.count(); n > 0; --n) check_node(in, calls, depth + 1);
        return;
    case Code::Loop:
        in.number32();
        return check_node(in, calls, depth + 1);
    case Code::Unroll:
    case Code::Count:
        in.repetition();
        return check_node(in, calls, depth + 1);
    case Code::CountParam:
        return check_node(in, calls, depth + 1);
    case Code::Call:
    case Code::Branch:
        if (in.number32() >= calls) throw InputError("grammar code calls a rule that is not there");
        in.bounds();
        if (op == Code::Call) return;
        for (uint32_t n = in.count(); n > 0; --n) in.text();
        for (uint32_t n = in.count(); n > 0; --n) {
            const bool present = in.byte() != 0;
            in.number32();
            if (present) check_node(in, calls, depth + 1);
        }
        return;
    case Code::Tokens:
        in.byte();
        for (uint32_t n = in.count(); n > 0; --n) {
            if (in.byte()) in.text();
            else in.number32();
        }
        return;
    case Code::Without:
        for (uint32_t n = in.count(); n > 0; --n) in.text();
        return check_node(in, calls, depth + 1);
    case Code::AnyOrder: {
        if (depth != 0) throw InputError("members in any order in grammar code must be a rule of their own");
        in.byte();
        const uint32_t members = in.count();
        if (members > kMaxMembers) throw InputError("grammar code has too many members in any order");
        for (uint32_t n = members; n > 0; --n) {
            in.byte();
            check_node(in, calls, depth + 1);
        }
        if (in.byte()) check_node(in, calls, depth + 1);
        check_node(in, calls, depth + 1);
        return check_node(in, calls, depth + 1);
    }
    case Code::Measured: {
        if (depth != 0) throw InputError("measured text in grammar code must be a rule of its own");
        in.text();
        const uint32_t states = in.count();
        if (states == 0) throw InputError("measured text in grammar code has no states");
        for (uint32_t state = 0; state < states; ++state) {
            in.byte();
            for (uint32_t n = in.count(); n > 0; --n) {
                if (in.number32() >= states) throw InputError("measured text in grammar code leads to a state that is not there");
                check_node(in, calls, depth + 1);
            }
        }
        return;
    }
    case Code::Text:
        if (depth != 0) throw InputError("free text in grammar code must be a rule of its own");
        in.number32();
        for (uint32_t n = in.count(); n > 0; --n) in.text();
        for (uint32_t n = in.count(); n > 0; --n) in.text();
        return;
    }
    throw InputError("grammar code holds an unknown opcode");
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
    if (bytes.substr(0, kMagic.size()) != kMagic)
        throw InputError("these bytes are not a grammar saved by this version of dovetail");
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
        CodeReader body(r.code);
        check_node(body, r.calls.size(), 0);
        if (!body.done()) throw InputError("a saved grammar has bytes after a rule's end");
    }
    if (!in.done()) throw InputError("a saved grammar has bytes after its end");
    return program;
}

}  // namespace dovetail
