// A leaf-spine network: hosts on leaves, every leaf cabled to every spine.
//
//     spine0      spine1     ...     spine7
//       | \      /   |  \           /   |        uplinks of a leaf together:
//       |  \    /    |   \         /    |        hosts_per_leaf * host_bandwidth / oversubscription
//      leaf0        leaf1     ...     leaf3
//     / | | \      / | | \           / | | \     host_bandwidth, one way
//   chip0 ...    chip16 ...        chip48 ...
//
// An endpoint is a chip if the network stands alone, and a network card or host if it joins domains
// (composed.h). One leaf with no spines is a single big switch. Routing: PathChoice. By
// destination, spine = destination mod spines.
//
// Not modelled: switches with different numbers of endpoints; uplinks of a leaf with unequal
// bandwidths.
//
// Levels of Places: chip, leaf.

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

struct LeafSpineSpec {
  std::optional<int> leaves{};  // in a composed cluster, unset: as many as its hosts need
  int hosts_per_leaf = 16;
  int spines = 0;                     // 0 only for a single leaf
  Bandwidth host_bandwidth{};         // one way; no default
  double oversubscription = 1;        // bandwidth down over bandwidth up of a leaf; 1 or more
  Duration link_latency{};            // each link; 0 unless given
  std::optional<int> switch_ports{};  // given only to check the spec, with one cable for each pair
  PathChoice routing{};
};

// Sets the size if none is given, so that there are ports for `endpoints`.
void fit(LeafSpineSpec& spec, std::uint32_t endpoints);

// The fields in files: topology/kinds/switched/leaf_spine_fields.cc.
const FieldTable<LeafSpineSpec>& leaf_spine_fields();

std::vector<Problem> check(const LeafSpineSpec& spec);

// REQUIRES: check(spec) is empty.
BuiltTopology build(const LeafSpineSpec& spec);

}  // namespace stepsim
