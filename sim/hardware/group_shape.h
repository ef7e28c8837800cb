// describe() finds out how the members of a communicator group lie in the cluster: the box of
// levels that they fill, if they fill one. This shape decides the choice of a collective algorithm.

#pragma once

#include <cstdint>
#include <span>

#include "sim/collectives/collective.h"
#include "sim/hardware/cluster.h"

namespace stepsim {

// `chips` holds the chip number of each member. The shape has one dimension for each level on which
// the members differ, if the members are all combinations of their coordinates on those levels. The
// coordinates need not be adjacent: every other GPU of a node is a dimension too. Otherwise the
// members form one switched dimension in the given order or, if they lie in several nodes of which
// one has more than one, node by node: a box of two dimensions if the nodes are alike, else
// GroupShape::uneven_nodes. A torus axis wraps if the level wraps and the members go all the way
// round it in equal strides. Where the chips form a grid that their numbers do not follow
// (Places::grid), the box is that of the grid. The ways between members are there where any two of
// them are linked directly (member_ways.h), but for boxes of untwisted torus axes whose links are
// all alike.
GroupShape describe(const Cluster& cluster, std::span<const std::uint32_t> chips);

}  // namespace stepsim
