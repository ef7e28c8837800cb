// The interfaces of a transport. The network (transport_network.h) moves packets and drives state
// machines that know neither links nor events:
//
//   Sender              a message at its source: what may leave when, what an answer means
//   Receiver            the same message at its destination: what to answer
//   CreditSource        a receiving host: whom it grants credit, for transports that pull
//   CongestionControl   the rate and window of a sender; several senders share the kinds
//
// A transport is a row of transport_table.h that combines them. All of them are pure: the same
// calls give the same results; the network asks timer() after each call and calls on_timer() then.
// Rates in bytes/s, sizes in bytes, times in picoseconds.

#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "sim/network/transport/packet.h"

namespace stepsim {

// MessageView is what a transport knows of its message.
struct MessageView {
  std::uint32_t flow = 0;  // its number in the network
  std::int64_t bytes = 0;  // payload
  double rate = 0;         // of the sender's link
  Instant base_rtt = 0;    // of an idle network, with full packets
  std::uint32_t hops = 0;  // links of its route
  std::uint64_t seed = 0;  // of its random numbers
};

struct AckSeen {
  Instant now = 0;
  std::uint64_t acknowledged = 0;  // everything below, in the sender's sequence
  std::uint64_t next = 0;          // the next sequence that will be sent
  double newly = 0;                // bytes newly acknowledged
  double in_flight = 0;            // bytes, after this answer
  bool marked = false;
  bool has_delay = true;  // false: the answered packet was sent more than once
  Instant delay = 0;      // since the answered packet left
  const Telemetry* telemetry = nullptr;
};

struct TrimSeen {
  Instant now = 0;
  double bytes = 0;      // of the packet that was cut
  double in_flight = 0;  // bytes, with it
  Instant delay = 0;     // since it left
};

class CongestionControl {
 public:
  static constexpr double kUnlimited = std::numeric_limits<double>::infinity();

  explicit CongestionControl(double rate, double window = kUnlimited)
      : rate_(rate), window_(window) {}
  virtual ~CongestionControl() = default;

  virtual void on_ack(const AckSeen&) {}
  virtual void on_notification(Instant) {}            // a CNP, or a mark that stands for one
  virtual void on_sent(Instant, double /*bytes*/) {}  // wire bytes
  virtual void on_trimmed(const TrimSeen&) {}
  virtual void on_loss(Instant) {}  // found by a gap, once a window
  virtual void on_timeout(Instant, double /*bytes*/) {}
  virtual Instant timer() const { return kNever; }
  virtual void on_timer(Instant) {}
  // Returns whether a change of rate moves the packet that is already due.
  virtual bool shifts_next_packet() const { return false; }
  virtual bool wants_telemetry() const { return false; }

  double rate() const { return rate_; }
  double window() const { return window_; }

 protected:
  double rate_;
  double window_;
};

class Sender {
 public:
  virtual ~Sender() = default;
  // Returns when the next packet may leave; kNever: not before an answer or the timer.
  virtual Instant ready_at(Instant now) = 0;
  // Fills in the next packet, which leaves now. `waiting`: messages that wait for the same port,
  // with this one.
  // REQUIRES: ready_at(now) <= now.
  virtual void send(Instant now, std::uint32_t waiting, Packet& packet) = 0;
  virtual void on_answer(Instant now, const Packet& answer, const Telemetry* telemetry) = 0;
  virtual Instant timer() const { return kNever; }
  virtual void on_timer(Instant, std::vector<Packet>& /*control packets to send*/) {}
  virtual bool is_finished() const = 0;  // every byte is acknowledged
  virtual bool wants_telemetry() const { return false; }
};

class Receiver {
 public:
  virtual ~Receiver() = default;
  // Takes a packet of the sender, and appends what to answer.
  virtual void on_packet(Instant now, const Packet& packet, std::vector<Packet>& answers) = 0;
  virtual Instant timer() const { return kNever; }
  virtual void on_timer(Instant, std::vector<Packet>&) {}
  virtual bool has_all() const = 0;
};

// An answer to `data`, which keeps what must come back.
inline Packet answer_to(const Packet& data, PacketKind kind, std::uint32_t bytes) {
  Packet answer;
  answer.kind = kind;
  answer.flow = data.flow;
  answer.bytes = bytes;
  answer.to_sender = true;
  answer.entropy = data.entropy;
  answer.stamp = data.stamp;
  answer.sequence = data.sequence;
  answer.marked = data.marked;
  answer.again = data.again;
  return answer;
}

class CreditSource {
 public:
  virtual ~CreditSource() = default;
  virtual Instant timer() const = 0;
  virtual void on_timer(Instant now, std::vector<Packet>& pulls) = 0;
};

// Rounds a time to the nearest whole unit.
inline Instant in_units(double picoseconds, Instant unit) {
  const auto units = static_cast<Instant>(picoseconds / static_cast<double>(unit) + 0.5);
  return units * unit;
}

}  // namespace stepsim
