// Transport hands transfers to the network and keeps the books of what must cross each link, for
// the check at the end of the run. Channels and collectives send through it.

#pragma once

#include <span>
#include <vector>

#include "sim/cluster.h"
#include "sim/meeting.h"
#include "sim/network/network.h"

namespace stepsim {

class Transport {
 public:
  Transport(const Cluster& cluster, Network& network)
      : cluster_(cluster), network_(network), routed_(cluster.fabric.links().size(), 0.0) {}

  const Cluster& cluster() const { return cluster_; }

  void start(Time now, const Transfer& transfer, const TransferOwner& owner);

  // A message of `bytes` from chip to chip, along its route.
  void send(Time now, std::uint32_t from_chip, std::uint32_t to_chip, Bytes bytes,
            const TransferOwner& owner);

  // Appends the route between two chips to `links` and returns the sum of its latencies.
  Duration route(std::uint32_t from_chip, std::uint32_t to_chip, std::vector<LinkId>& links) const;

  TransferOwner take(TransferId ended) { return table_.remove(ended); }

  const std::vector<double>& routed_bytes() const { return routed_; }  // by LinkId

 private:
  const Cluster& cluster_;
  Network& network_;
  TransferTable<TransferOwner> table_;
  std::vector<double> routed_;
  std::vector<LinkId> links_;  // scratch
  std::vector<LinkUse> uses_;  // scratch
};

}  // namespace stepsim
