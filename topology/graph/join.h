// join() makes a larger topology of equal blocks and a fabric between them. The result is a
// topology like any other, so it can be a block itself: nodes become pods, pods become a cluster.
//
//     +--- fabric: any topology, whose chips stand for the places of gateways ---+
//     |         |             |                 |             |                  |
//   gateway  gateway       gateway           gateway       gateway            gateway
//   +-----------------------------+         +-----------------------------+
//   | block 0: any topology       |         | block 1                     |
//   +-----------------------------+         +-----------------------------+
//
//   BuiltTopology pod = join(build(NvlinkDomainSpec{}),
//                            {.block = "node", .blocks = 32, .rails = 8},
//                            build(RailFabricSpec{.nodes = 32}));
//
// Gateways. With chips_per_host = 1 every chip is a gateway itself: its network card is part of its
// link into the fabric. Otherwise a host is added for every chips_per_host consecutive chips,
// cabled to each of them, and the host is the gateway. Where chips reach hosts through the block
// (host_exits.h: a PCIe box), the host is cabled to the block instead, by one link. Gateway g takes
// the place of chip g of the fabric. Places without a gateway are left out, with their links.
//
// Routes. A message within a block takes the block's route. Other messages go from chip to chip
// through the fabric, and through hosts if there are any. With rails, a message to another rail
// first moves inside its block to the chip on the destination's rail (NCCL's PXN). With planes
// (dual-plane networks: a card with two ports, each in a network of its own) there are several
// copies of the fabric. A hash of source, destination and flow key picks one for a message, so a
// message has the bandwidth of one plane.
//
// Names. Chips and switches of block 3 are "node3.<name>", hosts are "node3.host0". Those of the
// fabric keep their names, after fabric_prefix and, if there are several planes, "plane1.".
//
// Levels of Places are those of the block, followed by those of the fabric as blocks see them. The
// innermost of the latter is named `block`. If a name exists already, it gets the block's name as a
// prefix.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/base/units.h"
#include "topology/graph/built_topology.h"

namespace stepsim {

enum class CrossRail : std::uint8_t {
  kPxn,    // within the block to the chip on the destination's rail first (NCCL's PXN)
  kSpine,  // out of the sender's own card; rails meet in the fabric
};

struct Joint {
  std::string block = "node";
  std::uint32_t blocks = 1;
  std::uint32_t chips_per_host = 1;  // divides the chips of a block
  Bandwidth host_bandwidth{};        // from each chip to its host, one way; with hosts only
  Duration host_latency{};
  std::uint32_t rails = 1;   // chip c is on rail c % rails; divides the chips of a block
  std::uint32_t planes = 1;  // copies of the fabric
  std::string fabric_prefix{};
};

// REQUIRES: the conditions in the comments of Joint; the fabric has a chip for each gateway. The
// fabric may be missing if there is only one block.
BuiltTopology join(BuiltTopology block, const Joint& joint, std::optional<BuiltTopology> fabric);

}  // namespace stepsim
