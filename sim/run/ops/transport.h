// Transport passes transfers to the network and counts the bytes that must cross each link, for the
// totals and the check at the end of the run. Channels and collectives send through it.
//
// It adds the costs of the communication library, the same for every network model. The time to
// start and the time of a hop come before the first byte. Each byte of data takes `wire` bytes on
// its links (flags, gaps between packets), which are routed but not counted as data.
//
// In a folded job the network has one link for each class of links, and a transfer stands for all
// that look like it (link_fold.h).

#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/collectives/library_choice.h"
#include "sim/hardware/cluster.h"
#include "sim/hardware/group_links.h"
#include "sim/network/network.h"
#include "sim/run/ops/exact_bytes.h"
#include "sim/run/ops/link_fold.h"
#include "sim/run/ops/transfer_owner.h"

namespace stepsim {

class Transport {
 public:
  // by_packets: the network moves packets, which choose among the links of a group themselves.
  // `quotient`: that of the job, or null.
  Transport(const Cluster& cluster, Network& network, bool by_packets, const Quotient* quotient)
      : cluster_(cluster),
        network_(network),
        fold_(quotient),
        by_packets_(by_packets),
        chips_per_node_(chips_per_node(cluster.places)),
        routed_(quotient == nullptr ? cluster.fabric.links_and_groups() : quotient->links.size()),
        data_(cluster.library.ideal() ? 0 : routed_.size()) {}

  const Cluster& cluster() const { return cluster_; }
  bool by_packets() const { return by_packets_; }
  const LinkFold& fold() const { return fold_; }

  // Starts a transfer whose bytes are booked elsewhere.
  void start(Time now, const Transfer& transfer, const TransferOwner& owner) {
    network_.start(now, table_.add(owner), transfer);
  }

  // Counts the bytes over a link, or over each link of a class.
  void book(LinkId link, ExactBytes routed, ExactBytes data) {
    routed_[link.index()] += routed;
    if (!data_.empty()) data_[link.index()] += data;
  }

  struct Message {
    std::uint32_t from_chip = 0;
    std::uint32_t to_chip = 0;
    Bytes bytes;
    TransferOwner owner;
    TransferOrder order;
    std::uint32_t count = 1;  // messages that it stands for
  };
  // Sends a message along its route, at the library's cost of a single message.
  void send(Time now, const Message& message);

  // Sends a message of a collective that costs `cost`. A message that begins pays its start. Its
  // latency has run for `waited` already. REQUIRES: the job is not folded.
  void send(Time now, const Message& message, const LibraryCost& cost, bool begins,
            Duration waited);

  struct SwitchMessage {  // over one link, from or to a switch
    LinkId link;
    HopKind kind = HopKind::kNvlink;
    Bytes bytes;
    TransferOwner owner;
    TransferOrder order;
  };
  void send(Time now, const SwitchMessage& message, const LibraryCost& cost, bool begins,
            Duration waited);

  struct HostCopy {  // or work of a host on its memory
    Bytes bytes;
    Duration latency{};
    std::span<const LinkUse> uses;
    TransferOwner owner;
    TransferOrder order;
    std::uint32_t count = 1;  // copies that it stands for
  };
  void send(Time now, const HostCopy& copy);

  HopKind hop_kind(std::uint32_t from_chip, std::uint32_t to_chip) const {
    return from_chip / chips_per_node_ == to_chip / chips_per_node_ ? cluster_.library.inside
                                                                    : HopKind::kNetwork;
  }

  struct Past {
    std::vector<ExactBytes> routed;
    std::vector<ExactBytes> data;
  };
  Past past() const { return {.routed = routed_, .data = data_}; }
  // What was booked since `past` crosses the links `times` more (repeats.h). It counts once
  // book_repeats() is called, as the network does not carry it.
  void repeat(std::uint64_t times, const Past& past);
  void book_repeats();

  TransferOwner take(TransferId ended) { return table_.remove(ended); }

  // Bytes routed, indexed by LinkId, then by group; in a folded job by class. A group's entry is
  // for its average link and includes transfers that name one of its links.
  const std::vector<ExactBytes>& routed_bytes() const { return routed_; }
  // The same without the library's overhead.
  const std::vector<ExactBytes>& data_bytes() const { return data_.empty() ? routed_ : data_; }

 private:
  // Way is a message over the links in uses_, with `wire` bytes for its data and the library's time
  // first.
  struct Way {
    Duration of_links{};
    Duration of_library{};
    Duration waited{};
    bool keeps_links = false;
  };
  struct KnownWay {  // of a message in a folded job
    Duration of_links{};
    std::optional<Bandwidth> narrowest;
    TransferLinks links;
  };

  void start_message(Time now, const Way& way, Bytes data, double wire, const TransferOwner& owner,
                     TransferOrder order);
  void start_folded(Time now, const Way& way, const TransferLinks& links, Bytes data, double wire,
                    const TransferOwner& owner, TransferOrder order);
  void book(const LinkUse& use, Bytes routed, Bytes data);
  void route_message(const Message& message, Way& way);  // sets links_, uses_ and way.of_links
  std::optional<Bandwidth> narrowest() const;            // of links_
  const KnownWay& way_of(const Message& message);

  const Cluster& cluster_;
  Network& network_;
  LinkFold fold_;
  bool by_packets_;
  std::uint32_t chips_per_node_;
  TransferTable table_;
  std::vector<ExactBytes> routed_;
  Past repeated_;                                      // empty: nothing was repeated
  std::vector<ExactBytes> data_;                       // empty if all routed bytes are data
  std::unordered_map<std::uint64_t, KnownWay> known_;  // folded: by chips; never iterated
  std::vector<LinkId> links_;                          // scratch
  std::vector<LinkUse> uses_;                          // scratch
};

}  // namespace stepsim
