// A DGX SuperPod: nodes of 8 GPUs on an NVSwitch, one network card a GPU, and a rail-optimised
// leaf-spine network between the nodes.
//
//     spine0    spine1    ...    spine15         every leaf is cabled to every spine
//        \  \____  |  \_______  /  /
//         \      \ |          \/  /
//     su0.leaf0   su0.leaf1  ...  su0.leaf7   su1.leaf0 ...    leaf r of a scalable unit serves
//       |   \       |   \           |   \                      GPU r of each of its 32 nodes:
//       |    \      |    \          |    \                     rail r
//     node0.gpu0  node0.gpu1 ...  node0.gpu7  node1.gpu0 ...
//          \           |           /               \           NIC: 50 GB/s a GPU, one way
//           +--- node0.nvswitch --+            node1.nvswitch  NVLink: 450 GB/s a GPU, one way
//
// A GPU's network card is part of its link to the leaf ("node3.gpu5>su0.leaf5"), and the NVSwitch
// chips of a node are one switch. GPU g of node n is chip number gpus_per_node * n + g.
//
// Size. Each scalable unit has one leaf a rail, cabled as for a full unit even where nodes are
// missing. A leaf has one uplink cable for each node of a full unit, divided by
// `oversubscription`; spines are the fewest whose ports take them, spread evenly. With 64 ports:
//
//     GPUs     units  leaves  spines  cables a leaf-spine pair
//        256     1       8       4      8
//        512     2      16       8      4
//       1024     4      32      16      2      16 spines x 64 ports x 50 GB/s = 51.2 TB/s
//       2048     8      64      32      1
//
// More than 2048 GPUs need a core tier above the spines, which is not modelled: refused. The
// parallel cables of a leaf-spine pair are ONE link with their summed bandwidth, so two messages
// never collide on one cable of a pair while another is idle: a little better than static
// hashing, equal to adaptive routing within the pair. A single node has no network at all,
// whatever the fields of the network say.
//
// Routes are deterministic, by destination; the flow key changes nothing:
//
//   same node          GPU > NVSwitch > GPU
//   same rail and unit GPU > leaf > GPU
//   same rail          GPU > leaf > spine > leaf > GPU, spine = destination node mod spines
//   other rail         kPxn: NVSwitch to the local GPU of the destination's rail, then as above;
//                      kSpine: GPU > leaf > spine > leaf > GPU
//
// The node, not the GPU number, picks the spine: GPUs of one rail differ only in their node, and
// by GPU number a leaf would send through one in eight of its spines. Without oversubscription,
// and where spines divide the nodes of a unit, a spine-leaf link carries all the cards below it
// at full rate; different senders may still meet on an uplink, as with any static routing.
//
// Levels of Places, innermost first: gpu, node, and scalable_unit where there are several full
// units. Nodes that fill no whole number of units are gpu x node, without the unit.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/units.h"
#include "topology/built_topology.h"

namespace stepsim {

enum class CrossRail : std::uint8_t {
  kPxn,    // over NVSwitch to the GPU on the destination's rail first (NCCL's PXN)
  kSpine,  // out of the sender's own card; rails meet in the spine
};

// Defaults are a DGX H100 SuperPod (NVLink 4, NDR InfiniBand); bandwidths are one way.
struct DgxSuperPodSpec {
  int nodes = 1;
  int gpus_per_node = 8;              // also the rails, and the leaves of a unit
  int nodes_per_scalable_unit = 32;   // leaf ports used downwards
  Bandwidth nvlink_bandwidth{450e9};  // of each GPU to its NVSwitch: 18 links of 25 GB/s
  Duration nvlink_latency{};          // GPU to NVSwitch or back; 0 unless given
  Bandwidth nic_bandwidth{50e9};      // of each cable of the network
  Duration network_link_latency{};    // GPU to leaf, leaf to spine, or back; 0 unless given
  int switch_ports = 64;              // of a leaf or spine switch, 2 to 1024
  std::optional<int> spines{};        // the fewest that take all uplinks, unless given
  double oversubscription = 1;        // of a leaf: downlinks over uplinks; 1 or more
  CrossRail cross_rail = CrossRail::kPxn;
};

// What the rules above make of a spec.
struct DgxNetworkSize {
  int scalable_units = 0;
  int leaves = 0;
  int spines = 0;
  Bandwidth leaf_spine_bandwidth{};  // of all cables of a pair, one way
};

std::vector<Problem> check(const DgxSuperPodSpec& spec);

// All zero for a single node. REQUIRES: check(spec) is empty.
DgxNetworkSize network_size(const DgxSuperPodSpec& spec);

// REQUIRES: check(spec) is empty.
BuiltTopology build(const DgxSuperPodSpec& spec);

}  // namespace stepsim
