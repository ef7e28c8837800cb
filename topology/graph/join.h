// join() makes a larger topology of equal blocks and a fabric between them. The result is a
// topology like any other, so it can be a block again: nodes into pods, pods into a cluster.
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
// Gateways. With chips_per_host = 1 every chip is a gateway itself: its network card is part of
// its link into the fabric. Else a host is added for every chips_per_host consecutive chips, cabled
// to each of them, and the host is the gateway. Gateway number g of all takes the place of chip g
// of the fabric; places without a gateway are left out, with their links.
//
// Routes. Within a block as in the block; else chip, (host,) fabric, (host,) chip. With rails, a
// message to another rail first moves inside its block to the chip on the destination's rail
// (NCCL's PXN). With planes (dual-plane networks: a card with two ports, each in a network of its
// own) the fabric is there several times; a hash of source, destination and flow key picks one for
// a message, which so has one plane's bandwidth.
//
// Names: chips and switches of block 3 are "node3.<name>", hosts "node3.host0"; those of the
// fabric keep theirs, after fabric_prefix and "plane1." where there are several planes.
//
// Levels of Places: those of the block, then those of the fabric as blocks see them, the
// innermost of them named `block`; a name that is there already gets the block's before it.

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
  Bandwidth host_bandwidth{};        // of each chip to its host, one way; with hosts only
  Duration host_latency{};
  std::uint32_t rails = 1;   // chip c is on rail c % rails; divides the chips of a block
  std::uint32_t planes = 1;  // copies of the fabric
  std::string fabric_prefix{};
};

// REQUIRES: what the comments of Joint say; the fabric has a chip for each gateway, and is there
// unless there is one block only.
BuiltTopology join(BuiltTopology block, const Joint& joint, std::optional<BuiltTopology> fabric);

}  // namespace stepsim
