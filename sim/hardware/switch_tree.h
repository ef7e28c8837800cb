// switch_tree() finds the tree of switches between chips, on which switches can add and copy for
// all of them: the routes to the first chip, joined where they meet.

#pragma once

#include <cstdint>
#include <span>

#include "sim/collectives/collective.h"
#include "sim/hardware/cluster.h"

namespace stepsim {

// Empty where the routes pass through other chips, come in to the first chip over several links, or
// are not cabled both ways; and for a single chip. O(chips x length of a route).
SwitchTree switch_tree(const Cluster& cluster, std::span<const std::uint32_t> chips);

}  // namespace stepsim
