// The folded Clos network behind fat trees, leaf-spine and rail-optimised networks: leaves, spines
// above them, and cores above those. Its users (fat_tree.h, leaf_spine.h, rail_fabric.h) translate
// their own terms into a ClosShape. No other file needs it.
//
//        core0.0   core0.1        core1.0   core1.1        planes of cores, one for each spine of
//           | \     / |              | \     / |           a pod: spine s of every pod is cabled
//           |  \   /  |              |  \   /  |           to every core of plane s
//       pod0.spine0   pod1.spine0   pod0.spine1  pod1.spine1
//           | \                      / |
//           |  \____________________/  |                   every leaf of a pod is cabled to every
//       pod0.leaf0               pod0.leaf1                 spine of it
//         /    \                   /    \                   .
//     chip0    chip1           chip2    chip3
//
// One pod has no cores, and one leaf has no spines. Parallel cables of a pair are one link with
// their total bandwidth. With `rails` > 1, the endpoints of one group of `rails` (a node) are on as
// many leaves: endpoint e is on rail e % rails, at position e / rails of its rail.
//
// Routes go up only as far as they must: to a leaf, to a spine of the pod, or over a spine to a
// core of its plane. By destination, the spine is d mod spines and the core is d / spines mod
// cores, where d is the destination's position on its rail. So every pod uses one spine and one
// core for a destination, and all destinations of a leaf are spread evenly. Adaptive routing
// spreads a message over all spines of a pod and, between pods, over all cores: the links from a
// leaf to its spines form a group, and so do those from the spines of a pod to all cores, and the
// same downwards.

#pragma once

#include <cstdint>

#include "sim/base/units.h"
#include "topology/graph/built_topology.h"
#include "topology/graph/path_choice.h"

namespace stepsim {

struct ClosShape {
  std::uint32_t endpoints = 1;  // existing endpoints, which fill leaves in order
  std::uint32_t rails = 1;
  std::uint32_t endpoints_per_leaf = 1;  // in a full leaf
  std::uint32_t leaves_per_pod = 1;      // a multiple of rails
  std::uint32_t pods = 1;
  std::uint32_t spines_per_pod = 0;   // 0: a single leaf
  std::uint32_t cores_per_plane = 0;  // 0: a single pod
  Bandwidth endpoint_bandwidth{};
  Bandwidth leaf_spine_bandwidth{};  // sum over all cables of a pair
  Bandwidth spine_core_bandwidth{};  // sum over all cables of a pair
  Duration link_latency{};           // latency of each link
  PathChoice routing{};
  bool names_pods = false;         // names: pod0.leaf5 also where there is one pod
  bool is_rail_optimised = false;  // names: su0.leaf5 and rail, node, scalable_unit
};

// Levels: chip, leaf, pod; or rail, node, scalable_unit, pod. REQUIRES: the conditions in the
// comments above, and endpoints <= pods * leaves_per_pod * endpoints_per_leaf.
BuiltTopology build(const ClosShape& shape);

}  // namespace stepsim
