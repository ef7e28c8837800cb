// estimate_packets() estimates the size of a run on the packet network: packets times links for
// everything that the ranks send. Nothing is simulated. The bytes that the communication library
// adds on the wire are not counted.
//
// Messages are counted exactly, and so are collectives of up to 4,096 messages. In larger
// collectives every k-th message is examined and counts k times, with k such that about 4,096 are
// examined, because rounds of a collective are much alike. Cost: O(ranks x ops of a program that
// send + different collectives x groups).

#pragma once

#include <cstdint>

#include "sim/hardware/cluster.h"
#include "sim/network/packets/packet_network.h"
#include "sim/program/op_graph.h"

namespace stepsim {

struct PacketEstimate {
  std::uint64_t packet_hops = 0;
  std::uint64_t messages = 0;

  // Returns the rough time of a run on one core of a machine of 2025.
  double seconds() const;
};

PacketEstimate estimate_packets(const OpGraph& graph, const Cluster& cluster,
                                const PacketOptions& options, std::uint32_t steps);

}  // namespace stepsim
