// What several patterns of Python say together.
#pragma once

#include <nanobind/nanobind.h>

namespace dovetail {

namespace nb = nanobind;

/// The alphabet, the edges of each state as a dictionary, the states where a text may end, and the exits of others.
nb::tuple product(nb::list wanted, nb::list barred, nb::callable read, nb::callable narrow, nb::tuple limits, bool split,
                  bool exits, size_t most);

/// The coarsest classes of characters that the given ones can be built from, and each given one as a mask of these.
nb::tuple alphabet(nb::list classes);

}  // namespace dovetail
