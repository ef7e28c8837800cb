// CollectiveFacts says of a collective of a run what a reader of its trace asks: the algorithm that
// the library chose, and the link that limits it. Each group is worked out once.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "sim/hardware/cluster.h"
#include "sim/program/op_graph.h"
#include "sim/run/collectives/collective_plan.h"

namespace stepsim {

struct CollectiveFact {
  std::string algorithm;        // "ring LL128"
  std::uint32_t ranks = 0;      // of the group
  double bus_factor = 1;        // bus bandwidth / algorithm bandwidth
  std::string limiting_link{};  // "node0.gpu0>node0.nvswitch"; of several the first; empty: none
};

class CollectiveFacts {
 public:
  // Both must outlive the object.
  CollectiveFacts(const OpGraph& graph, const Cluster& cluster);

  // O(chips^2) for the first call with a work and a group.
  const CollectiveFact& of(CollectiveWorkId work, GroupId group);

 private:
  const OpGraph& graph_;
  const Cluster& cluster_;
  CollectivePlans plans_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, CollectiveFact> facts_;  // by work and group
};

}  // namespace stepsim
