// Packet is one packet of a transport: data, or what a receiver answers. Packets live in a pool and
// stand in lists (the queue of a port, a wire), so that moving one copies nothing and no event
// allocates once the pool has its largest size.
//
//   PacketPool pool;
//   const std::uint32_t packet = pool.take();      // a fresh one
//   queue.push_back(pool, packet);  queue.pop_front(pool);
//   pool.give_back(packet);
//
// Sequences are what the sender counts: bytes (go-back-N, streams) or packets (selective repeat).

#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

namespace stepsim {

using Instant = std::int64_t;  // picoseconds since the start
inline constexpr Instant kNever = std::numeric_limits<Instant>::max();
inline constexpr std::uint32_t kNoIndex = std::numeric_limits<std::uint32_t>::max();

enum class PacketKind : std::uint8_t {
  kData,     // of a message
  kAck,      // from here on control: what was received
  kNack,     // what was not: a gap, or a trimmed packet
  kPull,     // credit
  kCnp,      // congestion notification of RoCEv2
  kRequest,  // of a sender without credit
  kPause,    // to the neighbour only: 802.1Qbb
};

// What every link looks at stands in the first cache line.
struct alignas(64) Packet {
  std::uint32_t next = kNoIndex;  // in its list
  std::uint32_t flow = kNoIndex;  // number of its message
  std::uint32_t bytes = 0;        // on the wire
  std::uint32_t payload = 0;      // 0 once trimmed
  std::uint32_t over = kNoIndex;  // the link that it came over; kNoIndex at its source
  std::uint32_t place = 0;        // links taken
  std::uint32_t path = 0;         // choices of links still to be made (path_table.h)
  std::uint32_t telemetry = kNoIndex;
  std::uint32_t entropy = 0;  // what the sender chose its path by; answers return it
  PacketKind kind = PacketKind::kData;
  bool to_sender = false;  // an answer
  bool marked = false;     // congestion experienced; in an answer: echoed
  bool trimmed = false;
  bool asks = false;             // the sender wants an answer at once
  bool again = false;            // a retransmission, or the answer to one
  bool at_last_hop = false;      // trimmed there; pause: stop (not go)
  bool grants = false;           // an answer that carries credit
  bool is_counted = false;       // by the buffer of the switch where it is
  Instant at = 0;                // arrival at the end of its link
  std::uint64_t sequence = 0;    // of the data packet, or of the one answered
  Instant stamp = 0;             // when its data packet left the sender
  std::uint64_t cumulative = 0;  // answers: everything below was received
  std::uint64_t received = 0;    // answers: wire bytes received so far, each packet once
  std::uint64_t credit = 0;      // granted so far; data: wanted in all
  std::uint64_t bitmap = 0;      // received beyond `cumulative`: bit i is bitmap_base + i
  std::uint64_t bitmap_base = 0;
};
static_assert(sizeof(Packet) == 128);

class PacketPool {
 public:
  Packet& operator[](std::uint32_t packet) { return packets_[packet]; }
  const Packet& operator[](std::uint32_t packet) const { return packets_[packet]; }

  std::uint32_t take(const Packet& content = {}) {
    if (free_ == kNoIndex) {
      packets_.push_back(content);
      return static_cast<std::uint32_t>(packets_.size() - 1);
    }
    const std::uint32_t packet = free_;
    free_ = packets_[packet].next;
    packets_[packet] = content;
    return packet;
  }
  void give_back(std::uint32_t packet) {
    packets_[packet].next = free_;
    free_ = packet;
  }

 private:
  std::vector<Packet> packets_;
  std::uint32_t free_ = kNoIndex;
};

class PacketList {
 public:
  bool empty() const { return first_ == kNoIndex; }
  std::uint32_t front() const { return first_; }

  void push_back(PacketPool& pool, std::uint32_t packet) {
    pool[packet].next = kNoIndex;
    if (first_ == kNoIndex) {
      first_ = packet;
    } else {
      pool[last_].next = packet;
    }
    last_ = packet;
  }
  std::uint32_t pop_front(const PacketPool& pool) {
    const std::uint32_t packet = first_;
    first_ = pool[packet].next;
    return packet;
  }
  // Removes the packet that came last. O(packets).
  std::uint32_t pop_back(PacketPool& pool) {
    const std::uint32_t packet = last_;
    if (first_ == last_) {
      first_ = kNoIndex;
      return packet;
    }
    std::uint32_t before = first_;
    while (pool[before].next != packet) before = pool[before].next;
    pool[before].next = kNoIndex;
    last_ = before;
    return packet;
  }

 private:
  std::uint32_t first_ = kNoIndex;
  std::uint32_t last_ = kNoIndex;
};

// Telemetry is what switches write into a packet on its way (INT), a hop each; later hops of longer
// paths are left out.
struct Telemetry {
  static constexpr std::uint32_t kMostHops = 5;
  struct Hop {
    Instant at = 0;           // when the packet began to leave the port
    std::uint64_t sent = 0;   // bytes that the port had sent before it
    std::uint64_t queue = 0;  // bytes left in the port
    double rate = 0;          // of the link, bytes/s
  };

  std::uint32_t hops = 0;
  std::array<Hop, kMostHops> hop{};

  void add(const Hop& next) {
    if (hops < kMostHops) hop[hops++] = next;
  }
};

}  // namespace stepsim
