// Turns the Python nodes of dovetail.grammar.ir into a Program.
#pragma once

#include <nanobind/nanobind.h>

#include "code.h"

namespace dovetail {

Program encode(nanobind::handle root_rule);

}  // namespace dovetail
