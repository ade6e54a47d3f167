// Rules interned by content, and the units of mutually recursive rules that live and die together.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/common.h"

namespace dovetail {

class Automaton;
struct Unit;

struct Rule {
    uint64_t id = 0;  // never reused within a store
    Unit *unit = nullptr;
    std::string_view code;      // in the key of the unit
    std::vector<Rule *> calls;  // by slot; kept alive by the unit
    // By whether the caller's lower bound for the CountParam is above zero.
    bool nullable[2] = {false, false};
    bool productive[2] = {true, true};
    uint32_t least_bound = 0;  // measured text: the upper bound that it needs from its callers
    bool counts_tokens = false;
    bool keeps_set = false;          // members in any order: the counter is the set of those that were there
    bool single_exit = true;         // free text with stops has an exit for each
    std::vector<Rule *> left_group;  // the rules that are left-recursive together with this one
    std::unique_ptr<Automaton> automaton;

    Rule();
    ~Rule();
    /// Something, with these bounds from the caller.
    bool matches(Counter bounds) const { return productive[bounds.need > 0] && bounds.left >= least_bound; }
};

/// Strongly connected rules; holds on to the units that they call.
struct Unit : std::enable_shared_from_this<Unit> {
    std::vector<std::unique_ptr<Rule>> rules;
    std::vector<std::shared_ptr<Unit>> callees;
    std::string key;           // its content
    bool ends_keys = false;    // a rule here or below does
    bool bounds_keys = false;  // and they do not grow
};

}  // namespace dovetail
