// Computes how long packets take on the wire, and until they may queue at the next port. Both
// packet networks use it.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "sim/network/fabric.h"
#include "sim/network/packets/packet_network.h"

namespace stepsim {

// PacketWire is a link with times in picoseconds.
struct PacketWire {
  double bandwidth = 0;  // bytes/s
  std::int64_t latency = 0;
  std::int64_t full_packet = 0;  // time of a packet of full size
  std::int64_t header = 0;       // time of a header
};

class PacketTiming {
 public:
  explicit PacketTiming(const PacketOptions& options)
      : packet_bytes_(static_cast<std::uint32_t>(options.packet_bytes.value())),
        header_bytes_(static_cast<std::uint32_t>(options.header_bytes.value())),
        cuts_through_(options.switching == Switching::kCutThrough) {}

  PacketWire wire_of(const Link& link) const {
    const double bandwidth = link.bandwidth.value();
    return {bandwidth, link.latency.count(), packet_time(packet_bytes_, bandwidth).count(),
            packet_time(header_bytes_, bandwidth).count()};
  }

  std::int64_t time_of(const PacketWire& wire, std::uint32_t bytes) const {
    return bytes == packet_bytes_ ? wire.full_packet : packet_time(bytes, wire.bandwidth).count();
  }

  // Returns the time from the start of sending over `wire` until the packet may queue at the port
  // of `next`.
  std::int64_t until_queued(const PacketWire& wire, const PacketWire& next,
                            std::uint32_t bytes) const {
    const std::int64_t whole = time_of(wire, bytes);
    if (!cuts_through_) return whole + wire.latency;
    return std::max(std::min(wire.header, whole), whole - time_of(next, bytes)) + wire.latency;
  }

  // Returns when `packets` sent from `begin` on have left. Throws std::range_error if that, or the
  // arrival of the last one, is past the end of simulated time.
  static std::int64_t end_of(std::int64_t begin, std::int64_t each, std::int64_t packets,
                             const PacketWire& wire) {
    const Time end = Time{Duration(begin)} + packets * Duration(each);
    static_cast<void>(end + Duration(wire.latency));
    return end.since_start.count();
  }

 private:
  const std::uint32_t packet_bytes_;
  const std::uint32_t header_bytes_;
  const bool cuts_through_;
};

}  // namespace stepsim
