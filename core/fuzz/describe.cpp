// Writes the code of rules as text that a person can read.

#include "describe.h"

#include <algorithm>
#include <cstdio>

namespace dovetail {

namespace {

void describe(CodeReader &in) {
    auto text = [&] {
        std::printf(" \"");
        for (const char c : in.text()) std::printf(c >= ' ' && c < 127 ? "%c" : "\\x%02x", static_cast<uint8_t>(c));
        std::printf("\"");
    };
    auto texts = [&] {
        for (uint32_t n = in.count(); n > 0; --n) text();
    };
    auto number = [&] { std::printf(" %u", in.number32()); };
    auto bounds = [&] {
        const Counter c = in.bounds();
        std::printf(" {%u,%d}", c.need, static_cast<int>(c.left));
    };
    static constexpr const char *kNames[] = {"?",       "Lit",    "Special",  "Chars",      "Bytes",   "Seq",    "Alt",
                                             "Loop",    "Unroll", "Count",    "CountParam", "Call",    "Branch", "Tokens",
                                             "Without", "Text",   "AnyOrder", "NewKey",     "Measured"};
    const Code op = in.op();
    std::printf(" (%s", kNames[std::min<size_t>(static_cast<size_t>(op), 18)]);
    switch (op) {
    case Code::Lit:
    case Code::Special: text(); break;
    case Code::AnyOrder:
        std::printf(" %u", in.byte());
        for (uint32_t n = in.count(); n > 0; --n) std::printf(in.byte() ? " +" : " -"), describe(in);
        for (uint32_t n = in.byte() ? 3 : 2; n > 0; --n) describe(in);
        break;
    case Code::Measured:
        text();
        for (uint32_t states = in.count(); states > 0; --states) {
            std::printf(in.byte() ? " [+" : " [");
            for (uint32_t n = in.count(); n > 0; --n) number(), describe(in);
            std::printf("]");
        }
        break;
    case Code::NewKey: std::printf(" %u", in.byte()); break;
    case Code::Chars:
    case Code::Bytes:
        for (uint32_t n = 2 * in.count(); n > 0; --n) number();
        break;
    case Code::Seq:
    case Code::Alt:
        for (uint32_t n = in.count(); n > 0; --n) describe(in);
        break;
    case Code::Loop:
        number();
        describe(in);
        break;
    case Code::Unroll:
    case Code::Count:
        bounds();
        describe(in);
        break;
    case Code::CountParam: describe(in); break;
    case Code::Call:
        number();
        bounds();
        break;
    case Code::Branch:
        number(), bounds(), texts();
        for (uint32_t n = in.count(); n > 0; --n) {
            const bool present = in.byte() != 0;
            std::printf(" ->"), number();
            if (present) describe(in);
        }
        break;
    case Code::Tokens:
        std::printf(in.byte() ? " not" : "");
        for (uint32_t n = in.count(); n > 0; --n) in.byte() ? text() : number();
        break;
    case Code::Without:
        texts();
        describe(in);
        break;
    case Code::Text: number(), texts(), std::printf(" |"), texts(); break;
    }
    std::printf(")");
}
}  // namespace

void describe(const Program &program) {
    std::printf("\ngrammar, root {%u,%d}\n", program.init.need, static_cast<int>(program.init.left));
    for (size_t i = 0; i < program.rules.size(); ++i) {
        std::printf("%zu:", i);
        CodeReader in(program.rules[i].code);
        describe(in);
        std::printf("  calls");
        for (uint32_t callee : program.rules[i].calls) std::printf(" %u", callee);
        std::printf("\n");
    }
}
}  // namespace dovetail
