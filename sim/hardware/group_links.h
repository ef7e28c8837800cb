// links_of() finds what a communication library knows about the place of a group: how many nodes it
// spans, and the slowest links inside nodes and between them.
//
// A node is the innermost levels that are called gpu, pcie_switch and socket; where the innermost
// level is another one (hosts under a leaf), every chip is a node of its own.

#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "sim/collectives/library_choice.h"
#include "sim/hardware/cluster.h"

namespace stepsim {

// Chips of one node: chip numbers / this are equal.
std::uint32_t chips_per_node(const Places& places);

// Whether switches add up numbers of this type (NVLS: floating point of 16 and 32 bits).
bool switches_can_add(DataType type);

// Looks at the routes between neighbours in the order given. `type` is that of the elements that
// the collective adds up; unset if it adds nothing. O(chips x length of a route).
GroupLinks links_of(const Cluster& cluster, std::span<const std::uint32_t> chips,
                    std::optional<DataType> type = {});

}  // namespace stepsim
