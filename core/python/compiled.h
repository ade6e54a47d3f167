// What the rules of Python remember of the core.
#pragma once

#include "nodes.h"
#include "grammar/store.h"

namespace dovetail {

/// What a rule has become in the store that compiled it last; the rule owns it.
struct Compiled {
    uint64_t store = 0;
    KnownRule known;
    Counter init;

    static constexpr const char *kName = "dovetail.Compiled";

    static const Compiled *of(nb::handle rule) {
        const nb::handle owned = ir().rule_compiled(rule);
        return owned.is_none() ? nullptr : static_cast<const Compiled *>(PyCapsule_GetPointer(owned.ptr(), kName));
    }
    static void set(nb::handle rule, Compiled compiled) {
        ir().rule_compiled.set(rule, owned_by_python(new Compiled(std::move(compiled)), kName));
    }
};

}  // namespace dovetail
