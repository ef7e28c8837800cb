// plan_collective() works out what a collective does in one group of its communicator: which
// algorithm runs, what the library charges, and where all edges are one transfer, what that is.
//
// One transfer: pipelined collectives, whose weight of a link is the sum of the bytes of all
// messages over it, and whose latency is that of one trip through all rounds; both are summed from
// the very messages that a stepped run sends. And collectives in switches that add and copy while
// the data come, unless they run as packets.

#pragma once

#include <memory>
#include <vector>

#include "sim/base/ids.h"
#include "sim/collectives/algorithm.h"
#include "sim/collectives/library_choice.h"
#include "sim/program/op_graph.h"
#include "sim/run/ops/chip_share.h"
#include "sim/run/ops/transport.h"
#include "sim/run/simulation_options.h"

namespace stepsim {

struct CollectivePlan {
  std::unique_ptr<CollectiveAlgorithm> algorithm;  // none where it is one transfer
  LibraryCost cost{};
  ChipShare taken{};

  bool at_once = false;  // all of it is one transfer:
  Bytes sent{};          // by all members
  Bytes bytes{};         // over the link that carries most
  Duration latency{};
  std::vector<LinkUse> uses{};
  std::vector<double> data{};  // bytes over each of these links that are data; empty: all
};

// The algorithm that runs in a group, on which chips, and the cost that the library adds.
struct ChosenCollective {
  std::vector<std::uint32_t> chips;  // by member
  std::unique_ptr<CollectiveAlgorithm> algorithm;
  LibraryCost cost{};
};
ChosenCollective choose_collective(const OpGraph& graph, const Cluster& cluster,
                                   CollectiveWorkId work, GroupId group);

// O(messages of the algorithm x links of a route) where it is one transfer.
CollectivePlan plan_collective(const OpGraph& graph, const Transport& transport,
                               CollectiveWorkId work, GroupId group, Granularity granularity,
                               Fidelity fidelity);

}  // namespace stepsim
