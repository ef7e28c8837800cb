// switch_tree() finds the tree of switches on which switches can add and copy for a group of chips.
// The tree joins the routes to the first chip where they meet.

#pragma once

#include <cstdint>
#include <span>

#include "sim/collectives/collective.h"
#include "sim/hardware/cluster.h"

namespace stepsim {

// Returns nothing if there is a single chip, or if the routes pass through other chips, reach the
// first chip over several links, or are not cabled both ways. O(chips x length of a route).
SwitchTree switch_tree(const Cluster& cluster, std::span<const std::uint32_t> chips);

}  // namespace stepsim
