// links_of() finds what a communication library knows about a group's place: how many nodes the
// group spans, and the slowest links inside and between nodes.
//
// What a node is: chips_per_node() (sim/network/places.h).

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/collectives/library_choice.h"
#include "sim/hardware/cluster.h"

namespace stepsim {

// Returns the number of each member's node, in the order in which the members meet them.
std::vector<std::uint32_t> nodes_of(const Places& places, std::span<const std::uint32_t> chips);

// Returns whether switches can add numbers of this type (NVLS: floating point of 16 and 32 bits).
bool switches_can_add(DataType type);

// Returns the rate at which a compute unit of the chips adds numbers of this type; unset: no limit.
std::optional<Bandwidth> adder_of(const Cluster& cluster, DataType type);

// Looks at the routes between neighbours in the given order. `type` is the type of the elements
// that the collective adds up; unset if it adds nothing. O(chips x length of a route).
GroupLinks links_of(const Cluster& cluster, std::span<const std::uint32_t> chips,
                    std::optional<DataType> type = {});

}  // namespace stepsim
