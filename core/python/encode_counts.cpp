// What is counted: repetitions, members in any order, measured and free text.
#include "encoder.h"

namespace dovetail {

namespace {

constexpr size_t kUnrollAfterLoop = 512;  // behind a loop, where several counts would be under way at once

}  // namespace

void Encoder::repeat(nb::handle o, Draft &d, size_t depth) {
    const uint64_t low = number_of(ir().repeat_low(o), kMaxCount, "the lower bound of a repetition");
    const nb::handle high_object = ir().repeat_high(o);
    const bool unbounded = high_object.is_none();
    const uint64_t high = unbounded ? 0 : number_of(high_object, kMaxCount, "the upper bound of a repetition");
    if (!unbounded && high < low) throw InputError("a repetition has its bounds reversed");
    const Counter bounds{unbounded ? kUnbounded : static_cast<uint32_t>(high), static_cast<uint32_t>(low)};
    CodeWriter w(d.code);
    if (!unbounded && high == 0) {
        w.op(Code::Seq);
        w.number(0);
        return;
    }
    const uint64_t copies = unbounded ? low : high;
    if (copies <= 1) {
        // Options and loops, which are most repetitions, need no look at their body first.
        w.op(unbounded ? Code::Loop : Code::Unroll);
        if (unbounded) w.number(low);
        else w.bounds(bounds);
        const int counts = d.counts;
        node(ir().repeat_body(o), d, depth + 1);
        if (unbounded && d.counts != counts) d.count_at = std::string::npos;  // entered more than once
        d.loops = d.loops || unbounded;
        ++d.weight;
        return;
    }
    Draft body;
    body.loops = d.loops;
    node(ir().repeat_body(o), body, depth + 1);
    const bool searched = d.loops && low > 0;
    const size_t limit = searched ? kUnrollAfterLoop : kUnrollWeight;
    // Where strings are excluded, what may still come depends on the count too, so the count is part of the state.
    const bool small = copies * std::max<size_t>(body.weight, 1) <= limit || inside_without_ > 0;
    if (small && unbounded) {
        w.op(Code::Loop);
        w.number(low);
    } else if (small) {
        w.op(Code::Unroll);
        w.bounds(bounds);
    } else {
        return count(std::move(body), bounds, d);
    }
    body.count_at = std::string::npos;
    body.loops = body.loops || unbounded;
    body.weight = std::max<size_t>(body.weight, 1) * copies + 1;
    d.append(body);
}

void Encoder::count(Draft body, Counter bounds, Draft &d) {
    if (body.counts > 0) {
        // A frame has one counter, so the repeated part gets a frame of its own.
        settle_count(body);
        const uint32_t callee = anonymous(std::move(body));
        body = Draft();
        body.code.push_back(static_cast<char>(Code::Call));
        body.gaps.push_back({1, callee});
        body.weight = 2;
    }
    const size_t at = d.code.size();
    CodeWriter w(d.code);
    w.op(Code::Count);
    w.bounds(bounds);
    const size_t size = d.code.size() - at;
    d.append(body);
    d.weight += 3;
    ++d.counts;
    d.count_at = at;
    d.count_size = size;
    d.count_bounds = bounds;
}

/// Its frame keeps a set where others keep a count, so it is a rule of its own and its parts count in theirs.
void Encoder::any_order(nb::handle o, Draft &d, size_t depth) {
    const Ir &names = ir();
    const nb::handle members = names.any_members(o), extra = names.any_extra(o);
    if (length(members) > kMaxMembers) throw LimitError("more than 4096 members in any order");
    Draft body;
    body.init = {};
    CodeWriter w(body.code);
    w.op(Code::AnyOrder);
    w.number(names.any_started(o).ptr() == Py_True);
    w.number(length(members));
    each(members, [&](nb::handle pair) {
        if (length(pair) != 2) throw InputError("a member is a pair of a node and whether it is required");
        w.number(PyTuple_GetItem(pair.ptr(), 1) == Py_True);
        part(PyTuple_GetItem(pair.ptr(), 0), body, depth);
    });
    w.number(!extra.is_none());
    if (!extra.is_none()) part(extra, body, depth);
    part(names.any_separator(o), body, depth);
    part(names.any_close(o), body, depth);
    const uint32_t callee = anonymous(std::move(body));
    CodeWriter(d.code).op(Code::Call);
    d.gaps.push_back({d.code.size(), callee});
    d.weight += 2;
}

/// Its frame counts characters, so it is a rule of its own; texts that differ in their limits alone are one.
void Encoder::measured(nb::handle o, Draft &d, size_t depth) {
    const Ir &names = ir();
    const nb::handle states = names.measured_states(o), high = names.measured_high(o);
    const uint64_t count = length(states);
    const auto state_number = [&](nb::handle n) { return number_of(n, count == 0 ? 0 : count - 1, "a state of measured text"); };
    const uint64_t start = state_number(names.measured_start(o));
    Draft body;
    body.init.need = static_cast<uint32_t>(number_of(names.measured_low(o), kMaxCount, "the fewest characters"));
    if (!high.is_none()) body.init.left = static_cast<uint32_t>(number_of(high, kMaxCount, "the most characters")) + 1;
    if (body.init.need >= body.init.left) throw InputError("measured text has its bounds reversed");
    CodeWriter w(body.code);
    w.op(Code::Measured);
    w.text(bytes_of(names.measured_end(o)));
    w.number(count);
    // The start comes first, in the place of the first state.
    const auto place = [&](uint64_t state) { return state == start ? 0 : state == 0 ? start : state; };
    for (uint64_t k = 0; k < count; ++k) {
        const nb::handle state = PyTuple_GetItem(states.ptr(), static_cast<Py_ssize_t>(place(k)));
        if (length(state) != 2) throw InputError("a state of measured text is a pair");
        const nb::handle edges = PyTuple_GetItem(state.ptr(), 0);
        w.number(PyTuple_GetItem(state.ptr(), 1) == Py_True);
        w.number(length(edges));
        each(edges, [&](nb::handle edge) {
            if (length(edge) != 2) throw InputError("an edge of measured text is a pair");
            w.number(place(state_number(PyTuple_GetItem(edge.ptr(), 1))));
            part(PyTuple_GetItem(edge.ptr(), 0), body, depth);
        });
    }
    if (body.init.need > 0) check_going_on(states);
    const uint32_t callee = anonymous(std::move(body));
    CodeWriter(d.code).op(Code::Call);
    d.gaps.push_back({d.code.size(), callee});
    d.weight += 2;
}

/// There would be dead ends where a text that may end, but is too short, could not become longer by one.
void Encoder::check_going_on(nb::handle states) {
    const auto ends = [&](nb::handle n) {
        const auto at = static_cast<Py_ssize_t>(number_of(n, length(states) - 1, "a state of measured text"));
        return PyTuple_GetItem(PyTuple_GetItem(states.ptr(), at), 1) == Py_True;
    };
    each(states, [&](nb::handle state) {
        bool goes_on = PyTuple_GetItem(state.ptr(), 1) != Py_True;
        each(PyTuple_GetItem(state.ptr(), 0), [&](nb::handle edge) { goes_on = goes_on || ends(PyTuple_GetItem(edge.ptr(), 1)); });
        if (!goes_on) throw InputError("where characters are needed, measured text goes on from where it may end");
    });
}

void Encoder::text(nb::handle o, Draft &d, size_t depth) {
    const Ir &names = ir();
    const nb::handle excludes = names.text_excludes(o), stops = names.text_stops(o);
    const nb::handle after = names.text_after(o), captures = names.text_captures(o);
    const nb::handle max_chars = names.text_max_chars(o), max_tokens = names.text_max_tokens(o);
    const uint64_t min_chars = number_of(names.text_min_chars(o), kMaxCount, "min_chars");
    if (!max_tokens.is_none() && length(stops) > 0) throw InputError("free text with a budget of tokens cannot have stops");
    Draft body;
    CodeWriter w(body.code);
    w.op(Code::Text);
    w.number((after.is_none() ? 0u : kTextMayEnd) | (max_chars.is_none() ? 0u : kTextCountsChars) |
             (max_tokens.is_none() ? 0u : kTextCountsTokens) | (min_chars == 0 ? 0u : kTextNeedsChars));
    w.number(length(excludes));
    each(excludes, [&](nb::handle s) {
        if (bytes_of(s).empty()) throw InputError("free text cannot exclude the empty string");
        w.text(bytes_of(s));
    });
    w.number(length(stops));
    each(stops, [&](nb::handle pair) {
        if (length(pair) != 2) throw InputError("a stop is a pair of bytes and a node");
        const std::string_view stop = bytes_of(PyTuple_GetItem(pair.ptr(), 0));
        if (stop.empty()) throw InputError("free text cannot stop at the empty string");
        w.text(stop);
    });
    if (!max_chars.is_none()) body.init.left = static_cast<uint32_t>(number_of(max_chars, kMaxCount, "max_chars"));
    if (min_chars > body.init.left) throw InputError("free text has its bounds reversed");
    body.init.need = static_cast<uint32_t>(min_chars);
    if (!max_tokens.is_none()) body.init.need = static_cast<uint32_t>(number_of(max_tokens, kMaxCount, "max_tokens"));
    std::vector<std::string_view> capture_names;
    each(captures, [&](nb::handle name) { capture_names.push_back(text_of(name)); });
    branch(anonymous(std::move(body)), capture_names, d);
    CodeWriter arms(d.code);
    arms.number(length(stops) + 1);
    arms.number(!after.is_none());
    arms.number(0);
    if (!after.is_none()) node(after, d, depth + 1);
    each(stops, [&](nb::handle pair) {
        arms.number(1);
        arms.number(bytes_of(PyTuple_GetItem(pair.ptr(), 0)).size());
        node(PyTuple_GetItem(pair.ptr(), 1), d, depth + 1);
    });
}

}  // namespace dovetail
