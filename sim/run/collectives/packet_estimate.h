// estimate_packets() says before a run on the packet network how large it is: packets times links
// of everything that the ranks send. Nothing is simulated. Bytes that the communication library
// adds on the wire are not counted.
//
// Messages count exactly, and collectives of up to 4,096 messages too. Of larger ones every k-th
// message is looked at and counts k times, k so that about 4,096 are: rounds of a collective are
// much alike. Cost: O(ranks x ops of a program that send + collectives that differ x groups).

#pragma once

#include <cstdint>

#include "sim/hardware/cluster.h"
#include "sim/network/packets/packet_network.h"
#include "sim/program/op_graph.h"

namespace stepsim {

struct PacketEstimate {
  std::uint64_t packet_hops = 0;
  std::uint64_t messages = 0;

  // Rough: what a run takes on one core of a machine of 2025.
  double seconds() const;
};

PacketEstimate estimate_packets(const OpGraph& graph, const Cluster& cluster,
                                const PacketOptions& options, std::uint32_t steps);

}  // namespace stepsim
