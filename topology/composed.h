// A composed cluster: domains inside a fabric, pods of those inside another one, and so on. Each of
// them is any kind of topology_table.h, so most clusters can be described without new code.
//
//     tier "pod":   leaf_spine between hosts         +------- data-centre network -------+
//                                                    |                 |                 |
//     tier "node":  rail_fabric between cards     +-- pod0 --+      +-- pod1 --+      +-- pod2
//                                                 |    |     |      |    |     |
//     domain:       nvlink_domain               node0 node1 ...   node0 node1 ...
//
//   ComposedSpec{.domain = NvlinkDomainSpec{},
//                .tiers = {{.name = "node", .count = 32, .fabric = RailFabricSpec{}},
//                          {.name = "pod", .count = 3, .chips_per_host = 8, ...}}};
//
// The first tier joins `count` domains, the next one joins `count` of what that made; join.h says
// how names, routes and levels come about. A fabric that has no size gets the one that its gateways
// need; one with a size may have places to spare. What a fabric calls hosts are the gateways:
// chips with their cards, or hosts of chips_per_host chips each. Names of switches of the second
// and later tiers begin with the tier's: "pod_network.spine0".
//
// Not modelled: blocks of different kinds or sizes in one tier; hosts that serve another set of
// chips than consecutive ones (a v5p host serves 2x2 of a cube; here 4 along x: equal bandwidths,
// other names).

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/units.h"
#include "topology/graph/join.h"
#include "topology/topology_table.h"

namespace stepsim {

template <class Struct>
class FieldTable;

struct TierSpec {
  std::string name = "node";                  // what one of the blocks that are joined is called
  int count = 1;                              // how many blocks are joined
  std::optional<BlockSpec> fabric{};          // may be missing if count is 1
  int chips_per_host = 1;                     // 1: every chip has its own card and no host
  std::optional<Bandwidth> host_bandwidth{};  // of each chip to its host, one way; PCIe
  Duration host_latency{};                    // 0 unless given
  CrossRail cross_rail = CrossRail::kPxn;     // rail_fabric only
  int planes = 1;                             // copies of the fabric, as in dual-plane networks
};

struct ComposedSpec {
  BlockSpec domain;
  std::vector<TierSpec> tiers{};  // innermost first
};

// What files give.
const FieldTable<ComposedSpec>& composed_fields();

// "tiers[0].fabric.leaf_spine.spines". Builds the parts of the spec to know their sizes.
std::vector<Problem> check(const ComposedSpec& spec);

// REQUIRES: check(spec) is empty.
BuiltTopology build(const ComposedSpec& spec);

}  // namespace stepsim
