// A DGX SuperPod: nodes of 8 GPUs on an NVSwitch, one network card per GPU, and a rail-optimised
// leaf-spine network between the nodes. It is join() (join.h) of NvlinkDomainSpec and
// RailFabricSpec under commonly used names. Use a ComposedSpec for a cluster that differs.
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
// Size: rail_fabric.h has the rules and a table. Above 2,048 GPUs (64 leaves, with switches of 64
// ports) there is a core tier. A single node has no network at all, and the network fields are
// ignored.
//
// Routes are by destination, unless `routing` says otherwise:
//
//   same node          GPU > NVSwitch > GPU
//   same rail and unit GPU > leaf > GPU
//   same rail          GPU > leaf > spine > leaf > GPU, spine = destination node mod spines;
//                      between pods: spine > core > spine in the middle
//   other rail         kPxn: NVSwitch to the local GPU of the destination's rail, then as above;
//                      kSpine: GPU > leaf > spine > leaf > GPU
//
// Without oversubscription, and if the number of spines divides the nodes of a unit, a spine-leaf
// link carries all the cards below it at full rate. Different senders may still meet on an uplink,
// as with any static routing. With adaptive routing they don't, because all traffic over a leaf's
// uplinks is spread over all of them.
//
// Levels of Places, innermost first: gpu, node, and scalable_unit and pod if there are several full
// ones. Nodes that do not fill a whole number of units have levels gpu x node, without the unit.

#pragma once

#include <optional>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/units.h"
#include "topology/graph/built_topology.h"
#include "topology/graph/join.h"
#include "topology/graph/path_choice.h"
#include "topology/kinds/switched/rail_fabric.h"

namespace stepsim {

template <class Struct>
class FieldTable;

// The defaults are a DGX H100 SuperPod (NVLink 4, NDR InfiniBand). Bandwidths are one way.
struct DgxSuperPodSpec {
  int nodes = 1;
  int gpus_per_node = 8;              // also the rails, and the leaves of a unit
  int nodes_per_scalable_unit = 32;   // leaf ports used downwards
  Bandwidth nvlink_bandwidth{450e9};  // from each GPU to its NVSwitch: 18 links of 25 GB/s
  Duration nvlink_latency{};          // GPU to NVSwitch or back; 0 unless given
  Bandwidth nic_bandwidth{50e9};      // each cable of the network
  Duration network_link_latency{};    // each link of the network; 0 unless given
  int switch_ports = 64;              // leaf, spine or core switch, 2 to 1024
  std::optional<int> spines{};        // per pod; unset: as many as all uplinks need
  double oversubscription = 1;        // downlinks over uplinks of a leaf; 1 or more
  CrossRail cross_rail = CrossRail::kPxn;
  PathChoice routing{};
};

// The fields in files: topology/kinds/switched/dgx_superpod_fields.cc.
const FieldTable<DgxSuperPodSpec>& dgx_superpod_fields();

std::vector<Problem> check(const DgxSuperPodSpec& spec);

// All numbers are 0 for a single node. REQUIRES: check(spec) is empty.
RailFabricSize network_size(const DgxSuperPodSpec& spec);

// REQUIRES: check(spec) is empty.
BuiltTopology build(const DgxSuperPodSpec& spec);

}  // namespace stepsim
