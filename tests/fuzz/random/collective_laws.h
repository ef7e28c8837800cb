// Laws of a single collective on an idle cluster with the ideal library:
//
//   form     the closed form is right where it says that it is exact, and never above the time
//            where it says that it is a lower bound
//   size     twice the bytes never take less time
//   link     a faster link never makes it slower
//
// The operation, the algorithm, the members and the size are random.

#pragma once

#include <functional>
#include <string>

#include "sim/hardware/cluster.h"
#include "tests/fuzz/random/choices.h"

namespace stepsim {

// Returns the first law that does not hold, with its numbers; "" if all do. `build` makes the
// cluster.
std::string broken_collective(Choices& choices, const std::function<Cluster()>& build);

}  // namespace stepsim
