// Transport passes transfers to the network and counts the bytes that must cross each link, for the
// check at the end of the run. Channels and collectives send through it.
//
// It adds the costs of the communication library, the same for every network model. The time to
// start and the time of a hop come before the first byte. Each byte of data takes `wire` bytes on
// its links (flags, gaps between packets), which are routed but not counted as data.

#pragma once

#include <span>
#include <vector>

#include "sim/collectives/library_choice.h"
#include "sim/hardware/cluster.h"
#include "sim/hardware/group_links.h"
#include "sim/network/network.h"
#include "sim/run/ops/transfer_owner.h"

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

  // Starts a transfer over any links. `data`: bytes of data over each of them; empty: all bytes are
  // data.
  void start(Time now, const Transfer& transfer, const TransferOwner& owner,
             std::span<const double> data = {});

  struct Message {
    std::uint32_t from_chip = 0;
    std::uint32_t to_chip = 0;
    Bytes bytes;
    TransferOwner owner;
    TransferOrder order;
  };
  // Sends a message along its route, at the library's cost of a single message.
  void send(Time now, const Message& message);

  // Sends a message of a collective that costs `cost`. The `first` message pays its start.
  void send(Time now, const Message& message, const LibraryCost& cost, bool first);

  struct SwitchMessage {  // over one link, from or to a switch
    LinkId link;
    HopKind kind = HopKind::kNvlink;
    Bytes bytes;
    TransferOwner owner;
    TransferOrder order;
  };
  void send(Time now, const SwitchMessage& message, const LibraryCost& cost, bool first);

  HopKind hop_kind(std::uint32_t from_chip, std::uint32_t to_chip) const {
    return from_chip / chips_per_node_ == to_chip / chips_per_node_ ? cluster_.library.inside
                                                                    : HopKind::kNetwork;
  }

  // Appends the route between two chips to `links` and returns the sum of its latencies.
  Duration route(std::uint32_t from_chip, std::uint32_t to_chip, std::vector<LinkId>& links) const;

  TransferOwner take(TransferId ended) { return table_.remove(ended); }

  // Bytes routed, indexed by LinkId, then by group. A group's entry is for its average link and
  // includes transfers that name one of its links.
  const std::vector<double>& routed_bytes() const { return routed_; }

  // Returns how much of `carried`, the bytes that crossed a link, is data.
  double data_of(LinkId link, double carried) const;

 private:
  void book(LinkId link, double bytes, double data);
  // Way is a message over the links in uses_, with `wire` bytes for its data and the library's time
  // first.
  struct Way {
    Duration of_links{};
    Duration of_library{};
    bool keeps_links = false;
  };
  void start_message(Time now, const Way& way, Bytes data, double wire, const TransferOwner& owner,
                     TransferOrder order);
  void route_message(const Message& message, Way& way);  // sets links_, uses_ and way.of_links

  const Cluster& cluster_;
  Network& network_;
  bool by_packets_;
  std::uint32_t chips_per_node_;
  TransferTable table_;
  std::vector<double> routed_;
  std::vector<double> data_;           // empty if all routed bytes are data
  std::vector<LinkId> links_;          // scratch
  std::vector<LinkUse> uses_;          // scratch
  std::vector<double> data_of_links_;  // scratch
};

}  // namespace stepsim
