// Network is the common interface of the network models: it moves transfers over links and says
// when each is through. The simulation loop drives it, one instant after another:
//
//   network->start(now, id, transfer);             // any number of them, at any instant
//   network->settle(now);                          // after the last start of that instant
//   if (auto next = network->next_event()) network->advance(*next, done);
//
// A transfer is `bytes`, a latency, and (link, weight) pairs. While it moves at rate r it uses
// weight * r of each of its links; its largest weight is 1. A message is a path of weight 1; a
// multicast or a pipelined collective is one transfer over all its edges. Where a link belongs to a
// group (adaptive routing: fabric.h) the transfer names the group instead; the weight is then that
// on each link of the group. A transfer that must cross one link of a group, whatever switches
// choose, names the link and the group. A network of packets is always given the links of a path,
// and chooses among their groups itself. The life of a transfer:
//
//   start() --latency--> active: moves its bytes at the rate that the model gives it --> done
//
// The latency is paid first and takes no capacity; last byte there = done, without further
// latency. A transfer of zero bytes, or without links, is done at start + latency. Packets pay the
// latency of each link on the way, so of `latency` they pay only `sender_latency` at first: what
// the sender's software needs before the first byte leaves.
//
// Ids are chosen by the caller and may be used again once a transfer is reported as done.
// Results depend only on the transfers and their starts, not on the order of calls within an
// instant. Not thread-safe.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/units.h"
#include "sim/network/fabric.h"

namespace stepsim {

struct Transfer {
  Bytes bytes;       // over the link of weight 1
  Duration latency;  // before the first byte moves
  std::span<const LinkUse> uses;
  // For packet networks: messages that start together leave in order of `order`, then of id.
  std::uint64_t order = 0;
  bool keeps_links = false;   // packets: true makes them stay on these links, whatever their groups
  Duration sender_latency{};  // packets: the part of `latency` that is not the links'
  // Where a transfer stands for several that are alike (docs/folding.md), `uses` is what all of
  // them together use of one link, which may be more than 1, and this what each uses. Empty: the
  // same.
  std::span<const double> alone{};
};

struct NetworkStatistics {
  std::uint64_t transfers = 0;     // done so far
  std::uint64_t rate_updates = 0;  // changes of a transfer's rate (0 where the model has none)
  std::uint64_t packet_hops = 0;   // of all transfers started so far (0 where there are no packets)
};

class Network {
 public:
  virtual ~Network() = default;

  // REQUIRES: now is not before any time given earlier; `id` is not in flight. The transfer and
  // its uses are copied.
  virtual void start(Time now, TransferId id, const Transfer& transfer) = 0;

  // Updates rates after the starts of this instant. Idempotent.
  virtual void settle(Time now) = 0;

  // Returns when the network next needs advance(); nullopt if no transfer is in flight. It may be
  // an instant at which nothing ends (a latency is over). Valid after settle().
  virtual std::optional<Time> next_event() const = 0;

  // Moves to `to` and appends the transfers that end then, in order of id. The next settle(to)
  // updates rates, so that ends and starts of one instant are one change. REQUIRES: to ==
  // *next_event().
  virtual void advance(Time to, std::vector<TransferId>& done) = 0;

  // Returns the bytes that have crossed a link up to `at`: the integral of its rate over time.
  // REQUIRES: at is between the last instant given and next_event().
  virtual double carried(LinkId link, Time at) const = 0;

  virtual NetworkStatistics statistics() const = 0;

  // Returns why transfers in flight will never end although next_event() is nullopt; "" if they
  // will end.
  virtual std::string blocked_report() const { return {}; }
};

}  // namespace stepsim
