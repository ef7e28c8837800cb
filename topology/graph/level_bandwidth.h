// bandwidth_by_level() returns the bandwidth that each level of a cluster offers its chips,
// computed by maximum flow (graph_measures.h). Hierarchical formulas need these numbers, and here
// they come from the built network.
//
//   DGX H100, 1,024 GPUs     peers                             out of a group
//   gpu                      450 GB/s  GPUs of the node        500 GB/s     a GPU
//   node                      50 GB/s  same rail, same unit    400 GB/s     a node of 8
//   scalable_unit             50 GB/s  same place, other unit   12.8 TB/s   a unit of 256
//
// A level divides the chips into its members. Peers of a chip are those that differ from it on that
// level only. For the innermost level, the group is the chip itself. For the others, the group of a
// chip is all chips that differ from it only on levels further inside.
//
// Both numbers are those of the first chip and the first group. With faults or uneven networks
// others may have less. Levels of torus axes are taken from the inside out like all others.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/units.h"
#include "topology/graph/built_topology.h"

namespace stepsim {

struct LevelBandwidth {
  std::string level;
  std::uint32_t members = 1;      // the size of the level
  std::uint32_t group_chips = 1;  // chips of one group
  std::uint32_t groups = 1;       // number of groups in the cluster
  // From one chip to all its peers, with nobody else sending, over the links of its routes to them
  // (flow key 0). 0 if the level has one member.
  Bandwidth to_peers{};
  // From all chips of one group together to all chips outside it, over any links. 0 if there is
  // nothing outside.
  Bandwidth out_of_group{};
};

// Innermost level first.
std::vector<LevelBandwidth> bandwidth_by_level(const BuiltTopology& built);

}  // namespace stepsim
