// The packet network moves messages as packets through first-in-first-out ports, to the picosecond.
//
// A message is cut into packets of `packet_bytes`; the last one carries the rest, and no header is
// added. Every link is a port with a queue and the wire behind it:
//
//      queue of the port            wire                       next port
//     [ p3 | p2 | p1 ] --> one packet at a time: size / bandwidth, + latency --> [ ... ]
//
// One packet is sent at a time and never interrupted; its time is rounded up to the picosecond.
// Sent from b on, the whole packet is at the next port at b + size / bandwidth + latency. Store and
// forward: there it queues then. Cut-through: it queues already when its header is there, at b +
// header / bandwidth + latency, but never so early that a faster port would run out of its bytes.
// At its start, or Transfer::sender_latency later, a message puts all its packets into the queue of
// its first link, in order; messages that start together as Transfer::order and then their ids say,
// after the packets that arrive there in that instant. Packets that reach a port in the same
// instant queue in order of the links they came over (their numbers). A message is done when its
// last packet is wholly at its destination. These are the rules of the packet cases in
// tests/reference/network/README.md.
//
// Differences from the fluid models behind the same interface:
//   - A transfer must be a message: weights of 1, links that join end to end. Anything else (a
//     pipelined collective) throws std::logic_error, so collectives have to run stepped.
//   - Latency is paid link by link, from the Fabric, after Transfer::sender_latency, at whose end
//     the message starts. Transfer::latency is not looked at, unless the transfer has no bytes or
//     no links: then it is done at start + latency.
//   - NetworkStatistics counts packet-hops, and rates do not exist.
//
// Adaptive routing, where the fabric has groups of links (fabric.h): each packet takes the port
// with the shortest queue of those that lead on (port_choice.h), here when it queues, with finite
// buffers when the port before it begins to send it. A transfer that `keeps_links` chooses nothing.
//
// Options, off by default:
//   - Finite buffers, lossless: a port sends a packet only when the queue of the next port has room
//     for all of it, which is then reserved; the room is free again when the packet has left that
//     queue. Credits travel in no time. Ports that wait for the same queue are served in the order
//     in which they began to wait. The packets of a source wait in its memory and take no room in
//     the first queue. A circle of full queues stops for ever: next_event() is nothing while
//     transfers are in flight, and blocked_report() names the circle.
//   - Spraying: the packets of a message take turns over routes that a Router gives for different
//     flow keys. They may overtake each other; the destination puts them in order at no cost.
//
// Not modelled: headers' bytes, losses, windows and congestion control, priorities, the delay of a
// switch (part of the latency of a link).
//
// Cost: one event a packet and link but the last one, O(log links). Queues hold runs of equal
// packets of one message, so a long message on its first link is one entry. Throws
// std::range_error where time would pass 106 days.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "sim/base/units.h"
#include "sim/network/fabric.h"
#include "sim/network/network.h"
#include "sim/network/router.h"

namespace stepsim {

enum class Switching : std::uint8_t { kStoreAndForward, kCutThrough };
std::string_view name_of(Switching switching);  // "store-and-forward", "cut-through"

struct PacketSpraying {
  const Router* router = nullptr;  // of the same fabric; outlives the network
  std::uint32_t routes = 16;       // per message: flow keys 0 to routes - 1; at least 1
};

struct PacketOptions {
  Bytes packet_bytes{4096};  // 1 to 2^31 - 1; smaller: closer to a fluid, and slower to simulate
  Switching switching = Switching::kStoreAndForward;
  Bytes header_bytes{64};  // cut-through: bytes that a switch must see; up to packet_bytes
  std::optional<Bytes> buffer_bytes{};       // per link's queue, >= packet_bytes; unset: infinite
  std::optional<PacketSpraying> spraying{};  // unset: all packets of a message take its own route
};

// Throws std::logic_error for options outside the limits above.
std::unique_ptr<Network> make_packet_network(const Fabric& fabric,
                                             const PacketOptions& options = {});

// Returns the cost of simulating a transfer: its packets times its links.
std::uint64_t packet_hops(Bytes bytes, std::size_t links, Bytes packet_bytes);

// Returns the time of one packet on the wire, rounded up to the picosecond. Bytes / Bandwidth
// divides first, so 4,096 bytes at 1 GB/s would take one picosecond more than 4,096,000.
Duration packet_time(std::int64_t bytes, double bytes_per_second);

}  // namespace stepsim
