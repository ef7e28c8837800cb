// Transport hands transfers to the network and keeps the books of what must cross each link, for
// the check at the end of the run. Channels and collectives send through it. What the communication
// library adds to a transfer (flags, gaps between packets) is routed, but is not counted as data.

#pragma once

#include <span>
#include <vector>

#include "sim/collectives/library_choice.h"
#include "sim/hardware/cluster.h"
#include "sim/hardware/group_links.h"
#include "sim/network/network.h"
#include "sim/run/transfer_owner.h"

namespace stepsim {

class Transport {
 public:
  // by_packets: the network moves packets, which choose among the links of a group themselves.
  Transport(const Cluster& cluster, Network& network, bool by_packets)
      : cluster_(cluster),
        network_(network),
        by_packets_(by_packets),
        chips_per_node_(chips_per_node(cluster.places)),
        routed_(cluster.fabric.links_and_groups(), 0.0),
        data_(cluster.library.ideal() ? 0 : routed_.size(), 0.0) {}

  const Cluster& cluster() const { return cluster_; }

  // `data`: bytes of data over each of the transfer's links; empty: all that it moves.
  void start(Time now, const Transfer& transfer, const TransferOwner& owner,
             std::span<const double> data = {});

  // A message of `bytes` from chip to chip, along its route; what it costs is that of a message by
  // itself.
  void send(Time now, std::uint32_t from_chip, std::uint32_t to_chip, Bytes bytes,
            const TransferOwner& owner);

  // A message of a collective: its hop and its share of the wire, and the start of it if `first`.
  void send(Time now, std::uint32_t from_chip, std::uint32_t to_chip, Bytes bytes,
            const TransferOwner& owner, const LibraryCost& cost, bool first);

  HopKind hop_kind(std::uint32_t from_chip, std::uint32_t to_chip) const {
    return from_chip / chips_per_node_ == to_chip / chips_per_node_ ? cluster_.library.inside
                                                                    : HopKind::kNetwork;
  }

  // The same over one link, from or to a switch that adds or copies.
  void send_over(Time now, LinkId link, Bytes bytes, HopKind kind, const TransferOwner& owner,
                 const LibraryCost& cost, bool first);

  // Appends the route between two chips to `links` and returns the sum of its latencies.
  Duration route(std::uint32_t from_chip, std::uint32_t to_chip, std::vector<LinkId>& links) const;

  TransferOwner take(TransferId ended) { return table_.remove(ended); }

  // By LinkId, then by group: of a group, of its average link, with all that names one of its
  // links.
  const std::vector<double>& routed_bytes() const { return routed_; }

  // Of the bytes that a link has carried, data.
  double data_of(LinkId link, double carried) const;

 private:
  void book(LinkId link, double bytes, double data);
  void start_message(Time now, const Transfer& message, Bytes data, const TransferOwner& owner);

  // Along the route in links_.
  void send_routed(Time now, Duration latency, Bytes bytes, Bytes wire, const TransferOwner& owner);

  const Cluster& cluster_;
  Network& network_;
  bool by_packets_;
  std::uint32_t chips_per_node_;
  TransferTable<TransferOwner> table_;
  std::vector<double> routed_;
  std::vector<double> data_;           // empty where all that is routed is data
  std::vector<LinkId> links_;          // scratch
  std::vector<LinkUse> uses_;          // scratch
  std::vector<double> data_of_links_;  // scratch
};

}  // namespace stepsim
