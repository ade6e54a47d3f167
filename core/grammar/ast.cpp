// Reads the code of a rule into its tree, and works out what needs no vocabulary.

#include "grammar/ast.h"

namespace dovetail {

void Ast::assign(std::string_view code) {
    nodes.clear();
    kids_.clear();
    open_.clear();
    ranges_.clear();
    lists_.clear();
    counts_for_callers = false;
    CodeReader in(code);
    nodes.reserve(code.size() / 4 + 1);
    kids_.reserve(code.size() / 4 + 1);
    open_.reserve(16);
    root = read(in, 0);
    if (!in.done()) throw InputError("grammar code has bytes after its end");
}

uint32_t Ast::read(CodeReader &in, size_t depth) {
    if (depth > kMaxDepth) throw LimitError("grammar nodes are nested deeper than 2000 levels");
    Node n;
    n.op = in.op();
    auto children = [&](uint32_t count) {
        const size_t base = open_.size();
        for (uint32_t k = 0; k < count; ++k) {
            const uint32_t child = read(in, depth + 1);
            open_.push_back(child);
        }
        adopt(n, base);
    };
    switch (n.op) {
    case Code::Lit:
    case Code::Special: n.text = in.text(); break;
    case Code::NewKey: n.flag = in.byte() != 0; break;
    case Code::Chars:
    case Code::Bytes:
        n.first = static_cast<uint32_t>(ranges_.size());
        n.count = in.count();
        for (uint32_t k = 0; k < n.count; ++k) {
            const uint32_t low = in.number32(), high = in.number32();
            ranges_.emplace_back(low, high);
        }
        break;
    case Code::Seq:
    case Code::Alt: children(in.count()); break;
    case Code::Loop:
        n.bounds = {kUnbounded, in.number32()};
        children(1);
        break;
    case Code::Unroll:
    case Code::Count:
        n.bounds = in.repetition();
        children(1);
        break;
    case Code::CountParam:
        counts_for_callers = true;
        children(1);
        break;
    case Code::Call:
        n.slot = in.number32();
        n.bounds = in.bounds();
        break;
    case Code::AnyOrder: {
        n.flag = in.byte() != 0;
        n.slot = in.count();
        if (n.slot > kMaxMembers) throw InputError("grammar code has too many members in any order");
        const size_t base = open_.size();
        Lists lists;
        lists.required.reserve(n.slot);
        for (uint32_t k = 0; k < n.slot; ++k) {
            lists.required.push_back(in.byte() != 0);
            const uint32_t member = read(in, depth + 1);
            open_.push_back(member);
        }
        for (uint32_t k = in.byte() ? 3 : 2; k > 0; --k) {
            const uint32_t other = read(in, depth + 1);
            open_.push_back(other);
        }
        keep(n, std::move(lists));
        adopt(n, base);
        break;
    }
    case Code::Branch:
    case Code::Tokens:
    case Code::Text: read_lists(n, in, depth); break;
    case Code::Measured: read_stages(n, in, depth); break;
    case Code::Without:
        read_lists(n, in, depth);
        children(1);
        break;
    default: throw InputError("grammar code holds an unknown opcode");
    }
    nodes.push_back(n);
    return static_cast<uint32_t>(nodes.size() - 1);
}

/// Makes the nodes that are open since `base` the kids of a node.
void Ast::adopt(Node &n, size_t base) {
    n.first = static_cast<uint32_t>(kids_.size());
    n.count = static_cast<uint32_t>(open_.size() - base);
    kids_.insert(kids_.end(), open_.begin() + static_cast<std::ptrdiff_t>(base), open_.end());
    open_.resize(base);
}

void Ast::keep(Node &n, Lists lists) {
    n.list = static_cast<uint32_t>(lists_.size());
    lists_.push_back(std::move(lists));
}

void Ast::read_stages(Node &n, CodeReader &in, size_t depth) {
    n.text = in.text();
    Lists lists;
    lists.stages.resize(in.count());
    if (lists.stages.empty()) throw InputError("measured text has no states");
    const size_t base = open_.size();
    for (Stage &stage : lists.stages) {
        stage.ends = in.byte() != 0;
        stage.to.resize(in.count());
        for (uint32_t &to : stage.to) {
            to = in.number32();
            if (to >= lists.stages.size()) throw InputError("measured text leads to a state that is not there");
            const uint32_t character = read(in, depth + 1);
            open_.push_back(character);
        }
    }
    keep(n, std::move(lists));
    adopt(n, base);
}

void Ast::read_lists(Node &n, CodeReader &in, size_t depth) {
    auto strings = [&](std::vector<std::string_view> &out) {
        for (uint32_t k = in.count(); k > 0; --k) out.push_back(in.text());
    };
    Lists lists;
    if (n.op == Code::Branch) {
        n.slot = in.number32();
        n.bounds = in.bounds();
        strings(lists.names);
        for (uint32_t k = in.count(); k > 0; --k) {
            const bool present = in.byte() != 0;
            const uint32_t trailing = in.number32();
            lists.arms.push_back({present ? read(in, depth + 1) : kNone, trailing});
        }
    } else if (n.op == Code::Tokens) {
        n.flag = in.byte() != 0;
        for (uint32_t k = in.count(); k > 0; --k) {
            if (in.byte()) lists.tokens.push_back({kNone, in.text()});
            else lists.tokens.push_back({in.number32(), {}});
        }
        n.count = n.flag || !lists.tokens.empty();
    } else {
        if (n.op == Code::Text) n.slot = in.number32();
        if (n.op == Code::Text && (n.slot & kTextNeedsChars)) counts_for_callers = true;
        strings(lists.names);
        if (n.op == Code::Text) strings(lists.stops);
    }
    keep(n, std::move(lists));
}

}  // namespace dovetail
