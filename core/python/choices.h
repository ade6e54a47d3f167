// Choices that begin with captured words, as those between tools do.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "nodes.h"

namespace dovetail {

/// One part of a choice: where it begins with a literal under captures, outermost first, that word.
struct Named {
    std::vector<std::string_view> captures;
    std::string_view word;  // empty where it does not
    nb::handle part;
};

/// The first part of a sequence that has any; any other node is its own.
inline nb::handle first_part(nb::handle node) {
    if (!is_a(node, ir().seq)) return node;
    const nb::handle parts = ir().seq_parts(node);
    return length(parts) == 0 ? node : PyTuple_GetItem(parts.ptr(), 0);
}

inline Named named(nb::handle part) {
    Named option{{}, {}, part};
    nb::handle at = first_part(part);
    for (; is_a(at, ir().capture); at = ir().capture_body(at)) option.captures.push_back(text_of(ir().capture_name(at)));
    // Only a word in which special tokens may stand reads like a stop.
    if (!option.captures.empty() && is_a(at, ir().lit) && ir().lit_special(at).ptr() == Py_True) option.word = bytes_of(ir().lit_data(at));
    return option;
}

/// The parts of a choice in order, those that begin with a word under the same captures together.
inline std::vector<std::vector<Named>> named_alike(nb::handle parts) {
    std::vector<std::vector<Named>> groups;
    std::map<std::vector<std::string_view>, size_t> by_captures;
    each(parts, [&](nb::handle part) {
        Named option = named(part);
        size_t group = groups.size();
        if (!option.word.empty()) group = by_captures.try_emplace(option.captures, group).first->second;
        if (group == groups.size()) groups.emplace_back();
        groups[group].push_back(std::move(option));
    });
    return groups;
}

}  // namespace dovetail
