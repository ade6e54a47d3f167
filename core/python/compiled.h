// What the rules of Python remember of the core.
#pragma once

#include "nodes.h"
#include "store.h"

namespace dovetail {

/// What a rule has become in the store that compiled it last; the rule owns it.
struct Compiled {
    const Store *store = nullptr;
    KnownRule known;
    Counter init;

    static constexpr const char *kName = "dovetail.Compiled";

    static const Compiled *of(nb::handle rule) {
        const nb::handle owned = ir().rule_compiled(rule);
        return owned.is_none() ? nullptr : static_cast<const Compiled *>(PyCapsule_GetPointer(owned.ptr(), kName));
    }
    static void set(nb::handle rule, Compiled compiled) {
        auto *made = new Compiled(std::move(compiled));
        const nb::capsule owned(made, kName, [](void *p) noexcept { delete static_cast<Compiled *>(p); });
        rule.attr("compiled") = owned;
    }
};

}  // namespace dovetail
