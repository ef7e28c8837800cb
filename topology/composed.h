// A composed cluster: domains inside a fabric, pods of those inside another fabric, and so on. Each
// of them is any kind of topology_table.h, so most clusters need no new code.
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
// The first tier joins `count` domains. The next tier joins `count` copies of the result. join.h
// explains how names, routes and levels come about. A fabric without a size gets the one that its
// gateways need; a fabric with a size may have unused places. The hosts of a fabric are the
// gateways: chips with their cards, or hosts of chips_per_host chips each. Names of switches of the
// second and later tiers begin with the tier's: "pod_network.spine0".
//
// Not modelled: blocks of different kinds or sizes in one tier; hosts that serve chips that are not
// consecutive (a v5p host serves 2x2 chips of a cube; here it serves 4 along x, with equal
// bandwidths and other names).

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
  std::string name = "node";                  // name of the joined blocks
  int count = 1;                              // number of joined blocks
  std::optional<BlockSpec> fabric{};          // may be missing if count is 1
  int chips_per_host = 1;                     // 1: every chip has its own card and no host
  std::optional<Bandwidth> host_bandwidth{};  // from each chip to its host, one way; PCIe
  Duration host_latency{};                    // 0 unless given
  CrossRail cross_rail = CrossRail::kPxn;     // rail_fabric only
  int planes = 1;                             // copies of the fabric, as in dual-plane networks
};

struct ComposedSpec {
  BlockSpec domain;
  std::vector<TierSpec> tiers{};  // innermost first
};

// The fields in files.
const FieldTable<TierSpec>& tier_fields();
const FieldTable<ComposedSpec>& composed_fields();

// Returns problems such as "tiers[0].fabric.leaf_spine.spines". It builds the parts of the spec to
// know their sizes.
std::vector<Problem> check(const ComposedSpec& spec);

// REQUIRES: check(spec) is empty.
BuiltTopology build(const ComposedSpec& spec);

}  // namespace stepsim
