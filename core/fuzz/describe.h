// A grammar's code as text, for a round that is played again.
#pragma once

#include "code.h"

namespace dovetail {

void describe(const Program &program);

}  // namespace dovetail
