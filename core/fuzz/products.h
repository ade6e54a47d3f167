// Random patterns, and what they say together.
#pragma once

#include "writer.h"

namespace dovetail {

/// Whether the product of random patterns takes exactly the words that all of some match and none of others.
bool products_hold(Random &random);

}  // namespace dovetail
