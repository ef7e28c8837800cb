// sum_edges() adds up the messages of a pipelined collective edge by edge: what each member sends
// to each other one in all rounds, and how long a byte takes through the rounds.

#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/units.h"
#include "sim/collectives/algorithm.h"

namespace stepsim {

// All messages from one endpoint to another one.
struct CollectiveEdge {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  OptionalId<LinkId> link{};  // from or to a switch: the link, as the group's shape names it
  bool in_node = false;       // that link is inside a node
  bool adds = false;          // into a switch that adds
  friend bool operator==(const CollectiveEdge&, const CollectiveEdge&) = default;
};

struct EdgeSums {
  std::vector<CollectiveEdge> edges;
  std::vector<Bytes> bytes;  // by edge
  Bytes sent{};              // by all members together
  Duration latency{};        // of one trip through all rounds
};

// `hop` is asked once for each edge how long a byte takes over it. O(messages), of a
// relay O(lanes x members).
EdgeSums sum_edges(const CollectiveAlgorithm& algorithm,
                   const std::function<Duration(const CollectiveEdge&)>& hop);

}  // namespace stepsim
