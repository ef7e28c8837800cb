// The network of packets with a transport: what packet_network.h is without one. Headers, answers
// and pause frames are packets and take the time of the wire.
//
//   host port     answers first (or in the data's queue), then one packet of each message that may
//                 send, in turn
//   switch port   a queue for control, always first, and one for data, each first in, first out;
//                 a full queue drops, or trims to the header, which goes with control
//   switch        a buffer that its ports share, PFC by input port (switch_buffer.h); marks by RED
//                 or at a step, when a packet comes or when it leaves
//   wire          store and forward; the packet is there `latency` after its last bit has left
//
// A message is done when all of it is at its destination; its sender may go on until it knows that
// (acknowledged()). Events of one instant happen in the order in which they were scheduled; results
// depend on the seed, not on the order of calls.
//
// Every link needs one back, for the answers: a fabric without is refused (std::logic_error).
// A node is a switch to the packets that pass it and a host to those that end there. Not modelled:
// virtual lanes, cut-through, priorities of messages.
//
// Cost: an event a packet and link, two where somebody waits for the port; answers are packets. No
// allocation an event once the pools have their largest sizes. Memory: 128 bytes a flying packet.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/base/error.h"
#include "sim/network/fabric.h"
#include "sim/network/network.h"
#include "sim/network/router.h"
#include "sim/network/transport/transport_spec.h"
#include "sim/network/transport/transport_totals.h"

namespace stepsim {

struct MessageCounters {
  std::uint64_t packets = 0;  // data packets sent, with repetitions
  std::uint64_t marked = 0;
  std::uint64_t trimmed = 0;
  std::uint64_t dropped = 0;
  std::uint64_t repeated = 0;
  Instant acknowledged = kNever;  // when the sender knew that all of it had come
  Instant paused = 0;             // its first port, while it was sending
};

struct PortCounters {
  std::uint64_t peak_bytes = 0;  // data in the queue
  std::uint64_t pauses = 0;      // of this link, by its far end
  Instant paused = 0;
  std::uint64_t marked = 0;
  std::uint64_t trimmed = 0;
  std::uint64_t dropped = 0;
};

class TransportNetwork : public Network {
 public:
  // By TransferId, for the ids given so far; a later transfer of the same id starts again.
  virtual const MessageCounters& message(TransferId id) const = 0;
  virtual const PortCounters& port(LinkId link) const = 0;
  // O(links).
  virtual TransportTotals totals() const = 0;
};

// Returns whether a link leads the other way. O(links).
bool has_way_back(const Fabric& fabric, LinkId link);

// Returns what check_transport() says of the fabric's link with most bytes in flight, and a link
// without one back. O(links).
std::vector<Problem> check_transport(const TransportSpec& spec, const Fabric& fabric);

// `router`: of the same fabric, for policies other than given_route; nullptr: all shortest paths.
// Throws std::logic_error for a spec that check_transport() refuses.
std::unique_ptr<TransportNetwork> make_transport_network(const Fabric& fabric,
                                                         const TransportSpec& spec,
                                                         const Router* router = nullptr);

}  // namespace stepsim
