// Encodes Python nodes as the code of rules, callees before callers.

#include "encode.h"

#include <utility>

#include "encoder.h"

namespace dovetail {

Program Encoder::run(nb::handle root) {
    rule(root);
    while (!pending_.empty()) {
        const auto [index, object] = pending_.back();
        pending_.pop_back();
        Draft &draft = drafts_[index];
        node(ir().rule_body(object), draft, 0);
        settle_count(draft);
    }
    return assemble();
}

/// Notes on the rules what they have become.
void Encoder::note(const std::vector<KnownRule> &places) const {
    for (const auto &[object, index] : indices_)
        if (!drafts_[index].known) Compiled::set(object, {store_.id(), places[index], drafts_[index].init});
}

uint32_t Encoder::rule(nb::handle object) {
    if (!is_a(object, ir().rule)) throw InputError("a grammar is a dovetail.grammar.ir.Rule");
    const auto [it, fresh] = indices_.try_emplace(object.ptr(), static_cast<uint32_t>(drafts_.size()));
    if (fresh) {
        make_room();
        drafts_.emplace_back();
        if (it->second == 0 || !recall(Compiled::of(object), drafts_.back())) pending_.emplace_back(it->second, nb::borrow(object));
    }
    return it->second;
}

bool Encoder::recall(const Compiled *compiled, Draft &draft) {
    if (!compiled || compiled->store != store_.id()) return false;
    std::shared_ptr<Unit> unit = compiled->known.unit.lock();
    if (!unit) return false;
    draft.held = static_cast<uint32_t>(held_.size());
    held_.push_back(std::move(unit));
    draft.known = compiled->known.rule;
    draft.init = compiled->init;
    return true;
}

uint32_t Encoder::anonymous(Draft draft) {
    make_room();
    drafts_.push_back(std::move(draft));
    return static_cast<uint32_t>(drafts_.size() - 1);
}

void Encoder::make_room() const {
    if (drafts_.size() >= kMaxRules) throw LimitError("a grammar has more than 1,048,576 rules");
}

/// Where a rule counts once, its callers pass the bounds: rules that differ in them alone become one. A rule that
/// calls others may be left-recursive, and then it counts more than once in one frame.
void Encoder::settle_count(Draft &d) {
    if (d.counts != 1 || d.count_at == std::string::npos || !d.gaps.empty()) return;
    d.init = d.count_bounds;
    d.code.replace(d.count_at, d.count_size, 1, static_cast<char>(Code::CountParam));
}

void Encoder::node(nb::handle o, Draft &d, size_t depth) {
    if (depth > kMaxDepth) throw LimitError("grammar nodes are nested deeper than 2000 levels");
    if (d.code.size() > kMaxCodeBytes) throw LimitError("a rule is larger than 64 MiB");
    const nb::handle type = reinterpret_cast<PyObject *>(Py_TYPE(o.ptr()));
    const Ir &names = ir();
    if (type.is(names.lit)) {
        const std::string_view data = bytes_of(names.lit_data(o));
        CodeWriter w(d.code);
        w.op(names.lit_special(o).ptr() == Py_True ? Code::Special : Code::Lit);
        w.text(data);
        d.weight += data.size();
    } else if (type.is(names.unlisted)) {
        unlisted(o, d, depth);
    } else if (type.is(names.seq)) {
        several(Code::Seq, names.seq_parts(o), d, depth);
    } else if (type.is(names.alt)) {
        choice(names.alt_parts(o), d, depth);
    } else if (type.is(names.call)) {
        CodeWriter(d.code).op(Code::Call);
        d.gaps.push_back({d.code.size(), rule(names.call_rule(o))});
        d.weight += 2;
    } else if (type.is(names.repeat)) {
        repeat(o, d, depth);
    } else if (type.is(names.chars)) {
        ranges(names.chars_ranges(o), true, d);
    } else if (type.is(names.bytes)) {
        ranges(names.bytes_ranges(o), false, d);
    } else if (type.is(names.text)) {
        text(o, d, depth);
    } else if (type.is(names.new_key)) {
        CodeWriter(d.code).op(Code::NewKey);
        d.code.push_back(names.new_key_grows(o).ptr() == Py_True);
        ++d.weight;
    } else if (type.is(names.any_order)) {
        any_order(o, d, depth);
    } else if (type.is(names.measured)) {
        measured(o, d, depth);
    } else if (type.is(names.capture)) {
        capture(o, d, depth);
    } else if (type.is(names.tokens)) {
        tokens(o, d);
    } else if (type.is(names.without)) {
        const nb::handle excludes = names.without_excludes(o);
        CodeWriter w(d.code);
        w.op(Code::Without);
        w.number(length(excludes));
        each(excludes, [&](nb::handle s) { w.text(bytes_of(s)); });
        d.weight += 4 * kUnrollWeight;
        ++inside_without_;
        node(names.without_body(o), d, depth + 1);
        --inside_without_;
    } else {
        throw InputError("not a grammar node: " + std::string(nb::repr(o).c_str()).substr(0, 200));
    }
}

void Encoder::several(Code op, nb::handle parts, Draft &d, size_t depth) {
    CodeWriter w(d.code);
    w.op(op);
    w.number(length(parts));
    ++d.weight;
    each(parts, [&](nb::handle part) { node(part, d, depth + 1); });
}

void Encoder::ranges(nb::handle list, bool is_chars, Draft &d) {
    const Ranges ranges = range_list(list, is_chars ? 0x10FFFF : 0xFF);
    CodeWriter w(d.code);
    w.op(is_chars ? Code::Chars : Code::Bytes);
    w.ranges(ranges);
    d.weight += !ranges.empty() && ranges.back().second >= 0x80 ? 4 : 1;
}

/// A part of a rule whose frame has no counter to lend. Most count nothing, so it is written in its place first.
void Encoder::part(nb::handle o, Draft &d, size_t depth) {
    const size_t at = d.code.size(), gaps = d.gaps.size(), weight = d.weight;
    const int counts = std::exchange(d.counts, 0);
    const bool loops = std::exchange(d.loops, false);
    const size_t count_at = d.count_at, count_size = d.count_size;
    const Counter count_bounds = d.count_bounds;
    node(o, d, depth + 1);
    if (d.counts == 0) {
        d.counts = counts;
        d.loops = d.loops || loops;
        return;
    }
    Draft body;
    body.code = d.code.substr(at);
    for (size_t i = gaps; i < d.gaps.size(); ++i) body.gaps.push_back({d.gaps[i].at - at, d.gaps[i].callee});
    body.weight = d.weight - weight;
    body.counts = d.counts;
    body.loops = d.loops;
    if (d.count_at != std::string::npos) body.count_at = d.count_at - at;
    body.count_size = d.count_size;
    body.count_bounds = d.count_bounds;
    d.code.resize(at);
    d.gaps.resize(gaps);
    d.weight = weight;
    d.counts = counts;
    d.loops = loops;
    d.count_at = count_at;
    d.count_size = count_size;
    d.count_bounds = count_bounds;
    settle_count(body);
    const uint32_t callee = anonymous(std::move(body));
    CodeWriter(d.code).op(Code::Call);
    d.gaps.push_back({d.code.size(), callee});
}

void Encoder::branch(uint32_t callee, const std::vector<std::string_view> &captures, Draft &d) {
    d.code.push_back(static_cast<char>(Code::Branch));
    d.gaps.push_back({d.code.size(), callee});
    CodeWriter w(d.code);
    w.number(captures.size());
    for (std::string_view name : captures) w.text(name);
    d.weight += 3;
}

void Encoder::capture(nb::handle o, Draft &d, size_t depth) {
    Draft body;
    node(ir().capture_body(o), body, depth + 1);
    settle_count(body);
    const uint32_t callee = anonymous(std::move(body));
    branch(callee, {text_of(ir().capture_name(o))}, d);
    CodeWriter w(d.code);
    w.number(1);  // one arm: go on
    w.number(1);
    w.number(0);
    w.op(Code::Seq);
    w.number(0);
}

void Encoder::tokens(nb::handle o, Draft &d) {
    const nb::handle list = ir().tokens_tokens(o);
    CodeWriter w(d.code);
    w.op(Code::Tokens);
    w.number(ir().tokens_exclude(o).ptr() == Py_True);
    w.number(length(list));
    each(list, [&](nb::handle t) {
        const bool named = PyUnicode_Check(t.ptr());
        w.number(named);
        if (named) w.text(text_of(t));
        else w.number(number_of(t, UINT32_MAX - 1, "a token id"));
    });
    d.weight += 1;
}

Program Encoder::assemble() {
    Program program;
    program.rules.resize(drafts_.size());
    std::vector<uint32_t> slots(drafts_.size(), kNone);  // by callee, for the rule at hand
    for (size_t i = 0; i < drafts_.size(); ++i) {
        const Draft &d = drafts_[i];
        RuleCode &out = program.rules[i];
        out.known = d.known;
        out.held = d.held;
        if (d.known) continue;
        CodeWriter w(out.code);
        size_t from = 0;
        out.code.reserve(d.code.size() + 4 * d.gaps.size());
        for (const Draft::Gap &g : d.gaps) {
            uint32_t &slot = slots[g.callee];
            if (slot == kNone) {
                slot = static_cast<uint32_t>(out.calls.size());
                out.calls.push_back(g.callee);
            }
            out.code.append(d.code, from, g.at - from);
            w.number(slot);
            w.bounds(drafts_[g.callee].init);
            from = g.at;
        }
        out.code.append(d.code, from, std::string::npos);
        for (uint32_t callee : out.calls) slots[callee] = kNone;
    }
    program.init = drafts_[0].init;
    program.held = std::move(held_);
    return program;
}

std::shared_ptr<Grammar> compile(nb::handle root_rule, Store &store) {
    Encoder encoder(store);
    Program program = encoder.run(root_rule);
    std::vector<KnownRule> places;
    std::shared_ptr<Grammar> grammar;
    {
        const nb::gil_scoped_release unlocked;
        grammar = store.compile(std::move(program), &places);
    }
    encoder.note(places);
    return grammar;
}

}  // namespace dovetail
