#include "ast.h"

namespace dovetail {

Ast::Ast(std::string_view code) {
    CodeReader in(code);
    root = read(in, 0);
    if (!in.done()) throw InputError("grammar code has bytes after its end");
}

uint32_t Ast::read(CodeReader &in, size_t depth) {
    if (depth > kMaxDepth) throw LimitError("grammar nodes are nested deeper than 2000 levels");
    Node n;
    n.op = in.op();
    auto strings = [&](std::vector<std::string_view> &out) {
        for (uint32_t k = in.count(); k > 0; --k) out.push_back(in.text());
    };
    switch (n.op) {
    case Code::Lit:
    case Code::Special: n.text = in.text(); break;
    case Code::Chars:
    case Code::Bytes:
        for (uint32_t k = in.count(); k > 0; --k) {
            const uint32_t low = in.number32(), high = in.number32();
            n.ranges.emplace_back(low, high);
        }
        break;
    case Code::Seq:
    case Code::Alt:
        for (uint32_t k = in.count(); k > 0; --k) n.kids.push_back(read(in, depth + 1));
        break;
    case Code::Loop:
        n.bounds = {kUnbounded, in.number32()};
        n.kids.push_back(read(in, depth + 1));
        break;
    case Code::Unroll:
    case Code::Count:
        n.bounds = in.bounds();
        n.kids.push_back(read(in, depth + 1));
        break;
    case Code::CountParam: n.kids.push_back(read(in, depth + 1)); break;
    case Code::Call:
    case Code::Branch:
        n.slot = in.number32();
        n.bounds = in.bounds();
        if (n.op == Code::Call) break;
        strings(n.names);
        for (uint32_t k = in.count(); k > 0; --k) {
            const bool present = in.byte() != 0;
            const uint32_t trailing = in.number32();
            n.arms.push_back({present ? read(in, depth + 1) : kNone, trailing});
        }
        break;
    case Code::Tokens:
        n.flag = in.byte() != 0;
        for (uint32_t k = in.count(); k > 0; --k) {
            if (in.byte()) n.tokens.push_back({kNone, in.text()});
            else n.tokens.push_back({in.number32(), {}});
        }
        break;
    case Code::Without:
        strings(n.names);
        n.kids.push_back(read(in, depth + 1));
        break;
    case Code::Text:
        n.slot = in.number32();
        strings(n.names);
        strings(n.stops);
        break;
    default: throw InputError("grammar code holds an unknown opcode");
    }
    nodes.push_back(std::move(n));
    return static_cast<uint32_t>(nodes.size() - 1);
}

}  // namespace dovetail
