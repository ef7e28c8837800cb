// plan_collective() works out what a collective does in one group of its communicator: which
// algorithm runs, what the library charges, and where all edges are one transfer, what that is.
//
// One transfer: pipelined collectives, whose weight of a link is the sum of the bytes of all
// messages over it, and whose latency is that of one trip through all rounds; both are summed from
// the very messages that a stepped run sends. And collectives in switches that add and copy while
// the data come, unless they run as packets.

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/collectives/algorithm.h"
#include "sim/collectives/library_choice.h"
#include "sim/program/op_graph.h"
#include "sim/run/compute.h"
#include "sim/run/simulate.h"
#include "sim/run/transport.h"

namespace stepsim {

struct CollectivePlan {
  std::unique_ptr<CollectiveAlgorithm> algorithm;  // none where it is one transfer
  bool at_once = false;                            // one transfer; what follows up to `data` is it
  Bytes sent;                                      // by all members
  Bytes bytes;
  Duration latency{};
  std::vector<LinkUse> uses;
  std::vector<double> data;  // bytes of it over each link that are data; empty: all
  LibraryCost cost{};
  ChipShare taken{};
};

// O(messages of the algorithm x links of a route) where it is one transfer.
CollectivePlan plan_collective(const OpGraph& graph, const Transport& transport, std::uint32_t work,
                               std::uint32_t group, Granularity granularity, Fidelity fidelity);

}  // namespace stepsim
