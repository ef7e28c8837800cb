// The folded Clos network that fat trees, leaf-spine and rail-optimised networks all are: leaves,
// spines above them, and cores above those. Its users (fat_tree.h, leaf_spine.h, rail_fabric.h)
// turn their own words into a ClosShape; nobody else needs this file.
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
// their summed bandwidth. With `rails` > 1, endpoints of one group of `rails` (a node) sit on as
// many leaves: endpoint e is on rail e % rails, and number e / rails of its rail.
//
// Routes go up as far as they must: one leaf, one pod (spine: one of the pod's), or cores (spine,
// then one of its plane). By destination, the spine is d mod spines and the core d / spines mod
// cores, where d is the destination's number on its rail; so every pod uses one spine and one core
// for a destination, and all destinations of a leaf are spread evenly. Adaptive routing spreads a
// message over all spines of a pod, and over all cores between pods: the links from a leaf to its
// spines are a group, those from the spines of a pod to all cores, and the same downwards.

#pragma once

#include <cstdint>

#include "sim/base/units.h"
#include "topology/graph/built_topology.h"
#include "topology/graph/path_choice.h"

namespace stepsim {

struct ClosShape {
  std::uint32_t endpoints = 1;  // those that are there; they fill leaves in order
  std::uint32_t rails = 1;
  std::uint32_t endpoints_per_leaf = 1;  // of a full leaf
  std::uint32_t leaves_per_pod = 1;      // a multiple of rails
  std::uint32_t pods = 1;
  std::uint32_t spines_per_pod = 0;   // 0: a single leaf
  std::uint32_t cores_per_plane = 0;  // 0: a single pod
  Bandwidth endpoint_bandwidth{};
  Bandwidth leaf_spine_bandwidth{};  // of all cables of a pair
  Bandwidth spine_core_bandwidth{};  // of all cables of a pair
  Duration link_latency{};           // of each link
  PathChoice routing{};
  bool is_rail_optimised = false;  // names: su0.leaf5 and rail, node, scalable_unit
};

// Levels: chip, leaf, pod; or rail, node, scalable_unit, pod. REQUIRES: what the comments say, and
// endpoints <= pods * leaves_per_pod * endpoints_per_leaf.
BuiltTopology build(const ClosShape& shape);

}  // namespace stepsim
