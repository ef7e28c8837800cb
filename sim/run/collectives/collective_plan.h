// plan_collective() works out how a collective runs in one group of its communicator: the
// algorithm, the library's costs and, if all edges are one transfer, that transfer.
//
// Two kinds of collective are one transfer. In pipelined collectives the weight of a link is the
// sum of the bytes of all messages over it, and the latency is that of one trip through all rounds.
// Both are summed from the messages that a stepped run sends. The other kind runs in switches that
// add and copy while the data arrive, unless they run as packets.

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
  std::unique_ptr<CollectiveAlgorithm> algorithm;  // null if it is one transfer
  LibraryCost cost{};
  ChipShare taken{};

  bool at_once = false;  // the whole collective is one transfer
  Bytes sent{};          // by all members together
  Bytes bytes{};         // on the link that carries most
  Duration latency{};
  std::vector<LinkUse> uses{};
  std::vector<double> data{};  // data bytes over each of these links; empty: all bytes are data
};

// The algorithm that runs in a group, its chips, and the costs that the library adds.
struct ChosenCollective {
  std::vector<std::uint32_t> chips;  // by member
  std::unique_ptr<CollectiveAlgorithm> algorithm;
  LibraryCost cost{};
};
ChosenCollective choose_collective(const OpGraph& graph, const Cluster& cluster,
                                   CollectiveWorkId work, GroupId group);

// O(messages of the algorithm x links of a route) if it is one transfer.
CollectivePlan plan_collective(const OpGraph& graph, const Transport& transport,
                               CollectiveWorkId work, GroupId group, Granularity granularity,
                               Fidelity fidelity);

}  // namespace stepsim
