// A rail-optimised leaf-spine network, as in a DGX SuperPod: the nodes of a scalable unit have one
// leaf for each rail, and card r of a node is cabled to leaf r of its unit.
//
//     spine0    spine1    ...    spine15         every leaf is cabled to every spine
//        \  \____  |  \_______  /  /
//     su0.leaf0   su0.leaf1  ...  su0.leaf7   su1.leaf0 ...     leaf r of a unit serves card r of
//       |   \       |   \           |   \                       each of its 32 nodes: rail r
//     node0.r0    node0.r1  ...   node0.r7    node1.r0 ...      nic_bandwidth, one way
//
// Size. A leaf has one uplink cable for each node of a full unit, divided by `oversubscription`.
// The number of spines is the smallest whose ports take them, spread evenly. Units are cabled as if
// full. If there are more leaves than ports of a spine, there is a core tier. A pod then has as
// many units as half of the ports of a spine take, and its own spines. Cores join spine s of every
// pod (clos.h draws it); their number is the smallest again. With 8 rails, 32 nodes per unit and
// switches of 64 ports:
//
//     endpoints  units  leaves  pods  spines  cores   cables a leaf-spine pair
//        256        1       8     1       4             8
//        512        2      16     1       8             4
//       1024        4      32     1      16             2     51.2 TB/s of ports in the spines
//       2048        8      64     1      32             1
//       4096       16     128     4     128     64      1
//
// Fewer `spines` taper the network: a leaf then has only as many uplinks as the ports of its spines
// take, switch_ports / leaves for each spine (with a core tier half of the ports / leaves of a
// pod). Half of the spines give half of the bisection. `oversubscription` also tapers, and leaves
// out the spines that it makes idle.
//
// The parallel cables of a pair are ONE link with their summed bandwidth, so two messages never
// collide on one cable of a pair while another is idle: a little better than static hashing, equal
// to adaptive routing within the pair. The sizes with a core tier are those of NVIDIA's reference
// architecture; which spine is cabled to which core is a choice of this file.
//
// Endpoint e is card e % rails of node e / rails. Routing: PathChoice, by destination NODE, not
// card. The cards of one rail differ only in their node; by card number a leaf would send through
// only one in eight of its spines. Endpoints of different rails meet in a spine, unless the domain
// relays them first (CrossRail in join.h).
//
// Levels of Places: rail, node, scalable_unit, pod. Those that are not full are merged.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/units.h"
#include "topology/graph/built_topology.h"
#include "topology/graph/path_choice.h"

namespace stepsim {

template <class Struct>
class FieldTable;

struct RailFabricSpec {
  std::optional<int> nodes{};        // in a composed cluster, unset: as many as it joins
  int rails = 8;                     // cards of a node, and leaves of a unit
  int nodes_per_scalable_unit = 32;  // leaf ports used downwards
  Bandwidth nic_bandwidth{50e9};     // each cable of the network, one way
  Duration link_latency{};           // each link; 0 unless given
  int switch_ports = 64;             // of every switch, 2 to 1024
  std::optional<int> spines{};       // per pod; unset: as many as all uplinks need
  double oversubscription = 1;       // downlinks over uplinks of a leaf; 1 or more
  PathChoice routing{};
};

// RailFabricSize holds the numbers of switches and the bandwidths that follow from a spec by the
// rules above.
struct RailFabricSize {
  int scalable_units = 0;
  int leaves = 0;
  int pods = 0;
  int spines = 0;  // in all pods
  int cores = 0;
  Bandwidth leaf_spine_bandwidth{};  // all cables of a pair, one way
  Bandwidth spine_core_bandwidth{};
};

// Sets the size if none is given, so that there are ports for `endpoints`.
void fit(RailFabricSpec& spec, std::uint32_t endpoints);

// The fields in files: topology/kinds/switched/rail_fabric_fields.cc.
const FieldTable<RailFabricSpec>& rail_fabric_fields();

// check() calls check_fields(). If that finds no problem, it also checks whether the switches have
// enough ports.
std::vector<Problem> check(const RailFabricSpec& spec);
std::vector<Problem> check_fields(const RailFabricSpec& spec);

// REQUIRES: check(spec) is empty.
RailFabricSize size_of(const RailFabricSpec& spec);
BuiltTopology build(const RailFabricSpec& spec);

}  // namespace stepsim
