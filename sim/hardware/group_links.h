// links_of() finds what a communication library knows about a group's place: how many nodes the
// group spans, and the slowest links inside and between nodes.
//
// A node is made of the innermost levels that are called gpu, pcie_switch and socket. If the
// innermost level has another name (hosts under a leaf), every chip is a node of its own.

#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "sim/collectives/library_choice.h"
#include "sim/hardware/cluster.h"

namespace stepsim {

// Chips per node. Two chips are in one node if their numbers divided by this are equal.
std::uint32_t chips_per_node(const Places& places);

// Returns whether switches can add numbers of this type (NVLS: floating point of 16 and 32 bits).
bool switches_can_add(DataType type);

// Returns the rate at which a compute unit of the chips adds numbers of this type; unset: no limit.
std::optional<Bandwidth> adder_of(const Cluster& cluster, DataType type);

// Looks at the routes between neighbours in the given order. `type` is the type of the elements
// that the collective adds up; unset if it adds nothing. O(chips x length of a route).
GroupLinks links_of(const Cluster& cluster, std::span<const std::uint32_t> chips,
                    std::optional<DataType> type = {});

}  // namespace stepsim
