// FormulaGroup is the group of a collective as the closed forms see it: the levels on which its
// members differ, each with the bandwidth of a member's share and the time of a trip. Both are
// found on the routes of the cluster.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "books/collective_forms/collective_formulas.h"
#include "sim/collectives/collective.h"
#include "sim/collectives/library_choice.h"
#include "sim/hardware/cluster.h"
#include "sim/program/op_graph.h"

namespace stepsim {

struct FormulaGroup {
  std::vector<FormulaLevel> levels;  // innermost first
  Duration farthest{};               // latency between members that differ on every level; 0: torus
};

// Whether members that send over a link at the same time share its bandwidth, or each has it alone.
enum class LinkSharing : std::uint8_t { kShared, kAlone };

// `chips`: the chip number of each member, in the order of `shape`. The result includes what the
// library adds to hops and bytes. REQUIRES: shape.members() > 1.
FormulaGroup formula_group(const Cluster& cluster, std::span<const std::uint32_t> chips,
                           const GroupShape& shape, const LibraryCost& cost = {},
                           LinkSharing sharing = LinkSharing::kShared);

// StatedCollective is a collective with a given algorithm, for which a time is asked.
struct StatedCollective {
  const CollectiveTask& task;
  AlgorithmChoice algorithm = AlgorithmChoice::kRing;  // not kAuto
  const LibraryCost& cost;
  bool overlapped = true;  // pipelined
};

// Returns collective_formula() if its assumptions about member placement hold here, that is if it
// agrees with counted_form(), and if a stepped collective keeps in step; otherwise counted_form().
// Excludes the library's start time. REQUIRES: shape.members() > 1; the algorithm can run.
CollectiveFormula stated_form(const Cluster& cluster, std::span<const std::uint32_t> chips,
                              const GroupShape& shape, const StatedCollective& stated);

}  // namespace stepsim
