// The k-ary fat tree: switches of k ports in three tiers (Al-Fares et al., SIGCOMM 2008) or in two.
//
//      core0.0  core0.1          core1.0  core1.1       k = 4: (k/2)^2 = 4 cores, in k/2 planes
//         |  \___/ |  ...           |        |
//      pod0.spine0  pod0.spine1    pod1.spine0 ...      k pods of k/2 spines
//         |      \ /     |                                        and k/2 leaves
//      pod0.leaf0   pod0.leaf1     pod1.leaf0 ...
//       /   \         /   \          /   \              .
//   chip0 chip1    chip2 chip3    chip4 chip5 ...       k^3 / 4 = 16 hosts
//
// Two tiers: k leaves of k/2 hosts and k/2 spines, k^2 / 2 hosts. `taper` t gives the links of the
// top tier 1/t of the bandwidth: t = 1 is full bisection, half of all hosts times link_bandwidth.
//
// In a composed cluster only what its endpoints use is built: the pods that they fill, in order; no
// cores if that is one, and then only its leaves. Routes, levels and names are those of the whole
// tree. By itself a tree has all of its hosts, at most 2^20.
//
// Routing: PathChoice. By destination d: spine = d mod k/2, core = d / (k/2) mod k/2 of its plane.
//
// Levels of Places: chip (k/2), leaf, pod.

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

struct FatTreeSpec {
  std::optional<int>
      switch_ports{};          // k, even, to 1024; in a composed cluster: the smallest that fits
  int tiers = 3;               // 2 or 3
  double taper = 1;            // of the links of the top tier; 1 or more
  Bandwidth link_bandwidth{};  // each link, one way; no default
  Duration link_latency{};     // each link; 0 unless given
  PathChoice routing{};
  std::optional<std::uint32_t> endpoints{};  // that fit() was asked for; unset: all hosts
};

// Sets the size if none is given, so that there are ports for `endpoints`, which alone are built.
void fit(FatTreeSpec& spec, std::uint32_t endpoints);

// The fields in files: topology/kinds/switched/fat_tree_fields.cc.
const FieldTable<FatTreeSpec>& fat_tree_fields();

std::vector<Problem> check(const FatTreeSpec& spec);

// REQUIRES: check(spec) is empty.
BuiltTopology build(const FatTreeSpec& spec);

}  // namespace stepsim
