// A grammar's code as text, for a round that is played again.
#pragma once

#include "grammar/code.h"

namespace dovetail {

void describe(const Program &program);

}  // namespace dovetail
