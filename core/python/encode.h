// Turns the Python nodes of dovetail.grammar.ir into a Program, and that into a grammar.
#pragma once

#include <nanobind/nanobind.h>

#include "grammar/store.h"

namespace dovetail {

/// Rules that the store has already are not read again: most of a schema's rules are the same in all grammars.
std::shared_ptr<Grammar> compile(nanobind::handle root_rule, Store &store);

}  // namespace dovetail
