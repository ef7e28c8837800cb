// PacketMessages are the messages in flight of a packet network: their ids, the links of their
// packets, how many packets have arrived, and when each message ends. Both packet networks (with
// and without buffer limits) use it.
//
//   messages.start(now, id, transfer);                       // any number of an instant
//   messages.release(now);                                   // senders that are ready now
//   for (slot : messages.take_starting()) ...                // in their order
//   messages.arrive(slot, packets, at);                      // at the destination, in the future
//   messages.take_ended(now, done);
//
// A route is a run of words, one a link, at consecutive places; the word of the last link is
// marked, and those of links that stand for their group. A packet carries its place, so that
// neither message nor route need be looked up on its way.

#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/network/array_pool.h"
#include "sim/network/instant_queue.h"
#include "sim/network/network.h"
#include "sim/network/packets/packet_network.h"

namespace stepsim {

// Hop is a word of a route.
struct Hop {
  std::uint32_t word;

  LinkId link() const { return LinkId(word & (kChoiceMark - 1)); }
  bool is_last() const { return (word & kLastMark) != 0; }
  // Returns whether switches may choose another link of its group.
  bool may_choose() const { return (word & kChoiceMark) != 0; }

  static constexpr std::uint32_t kLastMark = 1U << 31;
  static constexpr std::uint32_t kChoiceMark = 1U << 30;
};

class PacketMessages {
 public:
  using Slot = Id<struct PacketSlotTag>;

  PacketMessages(const Fabric& fabric, const PacketOptions& options);

  // Throws std::logic_error unless the transfer is a message.
  void start(Time now, TransferId id, const Transfer& transfer);

  // Starts the messages whose Transfer::sender_latency is over. REQUIRES: none was earlier.
  void release(std::int64_t now);

  // Returns the messages that have started since the last call, in their order, without those that
  // need no packets. Valid until the next start().
  std::span<const Slot> take_starting();

  Hop hop(std::uint32_t place) const { return {words_.word(place)}; }

  // Calls queue(place of the first hop, bytes of each, packets) for the packets of a message, as
  // runs of equal ones on one route, in the order in which they queue.
  template <typename Queue>
  void cut(Slot slot, Queue&& queue) const {
    const std::int64_t full = messages_[slot].bytes / packet_bytes_;
    const auto each = static_cast<std::uint32_t>(packet_bytes_);
    const auto rest = static_cast<std::uint32_t>(messages_[slot].bytes % packet_bytes_);
    const std::uint32_t routes = messages_[slot].routes;
    std::uint32_t route = 0;
    if (routes == 1) {
      if (full > 0) queue(first_place(slot, 0), each, full);
    } else {
      for (std::int64_t packet = 0; packet < full; ++packet) {
        queue(first_place(slot, route), each, std::int64_t{1});
        if (++route == routes) route = 0;
      }
    }
    if (rest > 0) queue(first_place(slot, route), rest, std::int64_t{1});
  }

  // The last of `packets` of the message will have arrived completely at `at`.
  void arrive(Slot slot, std::int64_t packets, std::int64_t at) {
    Message& message = messages_[slot];
    if (at > message.latest) message.latest = at;
    message.packets_left -= packets;
    if (message.packets_left == 0) ending_.push(message.latest, slot);
  }

  // Returns when a message next starts or ends.
  std::optional<std::int64_t> next_event() const {
    if (ending_.empty() && delayed_.empty()) return std::nullopt;
    if (ending_.empty()) return delayed_.next();
    return delayed_.empty() ? ending_.next() : std::min(ending_.next(), delayed_.next());
  }

  // Appends the messages that end now, in order of id. REQUIRES: none ended earlier.
  void take_ended(std::int64_t now, std::vector<TransferId>& done);

  std::uint64_t in_flight() const { return messages_.size() - free_.size(); }
  const NetworkStatistics& statistics() const { return statistics_; }

 private:
  struct Message {
    TransferId id;
    std::uint32_t routes = 1;
    bool is_sprayed = false;
    std::uint64_t order = 0;
    std::int64_t bytes = 0;
    std::int64_t packets_left = 0;
    std::int64_t latest = 0;  // latest arrival so far
    PooledArray words;        // the route; if sprayed: the start of each route, then the routes
  };

  // Words is an ArrayPool with access to a word by its place in the pool. A message's array does
  // not move once it is complete.
  class Words : public ArrayPool<std::uint32_t> {
   public:
    std::uint32_t word(std::uint32_t place) const { return *data({place, 1, 1}); }
  };

  Slot take_slot();
  // Returns the place of the first hop of one of the routes that packets use in turn.
  std::uint32_t first_place(Slot slot, std::uint32_t route) const;
  void check_message(const Transfer& transfer) const;
  std::uint32_t word_of(LinkId link, bool keeps_links) const;
  void add_route(Message& message, std::span<const LinkId> links, bool keeps_links);
  void spray(Message& message, NodeId from, NodeId to);
  void count_hops(const Message& message);

  const Fabric& fabric_;
  const std::int64_t packet_bytes_;
  const std::optional<PacketSpraying> spraying_;
  IdTable<Slot, Message> messages_;
  std::vector<Slot> free_;
  Words words_;
  InstantQueue<Slot> delayed_;  // until the end of Transfer::sender_latency
  std::vector<Slot> starting_;
  std::vector<Slot> taken_;
  InstantQueue<Slot> ending_;  // until the end of a message
  NetworkStatistics statistics_;
  std::vector<LinkId> links_;             // scratch
  std::vector<std::uint32_t> sprayed_;    // scratch
  std::vector<std::uint32_t> beginning_;  // scratch
};

}  // namespace stepsim
