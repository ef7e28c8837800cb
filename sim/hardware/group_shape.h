// describe() finds out how the members of a communicator group stand in the cluster: the box of
// levels that they fill, if they fill one. Collective algorithms are chosen by it.

#pragma once

#include <cstdint>
#include <span>

#include "sim/collectives/collective.h"
#include "sim/hardware/cluster.h"

namespace stepsim {

// `chips`: the chip number of each member. The shape has a dimension for each level on which the
// members differ, when they are all the combinations of their coordinates on those levels (adjacent
// or not: every other GPU of a node is a dimension too); otherwise they are one switched dimension
// in the order given. A torus axis wraps when the level does and the members go all the way round
// it in equal strides.
GroupShape describe(const Cluster& cluster, std::span<const std::uint32_t> chips);

}  // namespace stepsim
