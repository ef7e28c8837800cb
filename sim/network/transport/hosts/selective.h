// Selective repeat: every packet is numbered and answered for itself, whatever order it comes in.
// The sender keeps what is under way and repeats what a NACK (of a trimmed packet, or of a gap) or
// a time-out names, lowest number first. NDP, EQDS and the transports of UEC are this with
//
//   a window     of a congestion control: a packet leaves if it fits in beside what is in flight
//   credit       in bytes (EQDS, RCCC): a packet leaves while there is any, and may overdraw it;
//   what
//                a sender is given in advance ends with the first answer. In packets (NDP): a pull
//                lets one go
//
// An answer carries what has come in order, a bitmap of 64 beyond, and the bytes so far; these, not
// single answers, end what is in flight. With `ack_every` there is one when so many bytes came
// since the last, and at once for the first packet, marked and repeated packets, and those that ask
// for it: the last of the message, or the last that window or credit lets out. With `reorder` the
// receiver takes a number as lost once so many later ones have come (single paths).

#pragma once

#include <cstdint>
#include <memory>
#include <queue>
#include <vector>

#include "sim/network/packets/packet_port.h"
#include "sim/network/transport/hosts/credit.h"
#include "sim/network/transport/received_set.h"
#include "sim/network/transport/transport.h"
#include "sim/network/transport/transport_spec.h"

namespace stepsim {

enum class CreditKind : std::uint8_t { kNone, kBytes, kPackets };

class SelectiveSender final : public Sender {
 public:
  // `window`: bytes on the wire; with credit, what is given in advance.
  SelectiveSender(const TransportSpec& spec, const MessageView& message, CreditKind credit,
                  double window, std::unique_ptr<CongestionControl> control);

  Instant ready_at(Instant now) override;
  void send(Instant now, std::uint32_t waiting, Packet& packet) override;
  void on_answer(Instant now, const Packet& answer, const Telemetry* telemetry) override;
  Instant timer() const override;
  void on_timer(Instant now, std::vector<Packet>& control_packets) override;
  bool is_finished() const override { return first_ >= packets_; }

 private:
  enum class State : std::uint8_t { kUnsent, kUnderWay, kLost, kDone };
  struct Sent {
    Instant at = 0;
    State state = State::kUnsent;
    std::uint8_t repeats = 0;
  };
  struct Departure {
    std::uint64_t packet;
    Instant at;
  };

  std::uint32_t payload_of(std::uint64_t packet) const;
  std::uint32_t bytes_of(std::uint64_t packet) const { return payload_of(packet) + header_; }
  Sent& sent(std::uint64_t packet) { return sent_[packet & (sent_.size() - 1)]; }
  void make_room(std::uint64_t packet);
  bool has_repeats();
  void lose(std::uint64_t packet);
  void settle(std::uint64_t packet);
  void take_credit(const Packet& answer);
  std::uint64_t wanted_credit(std::uint32_t waiting) const;
  void forget_departures();

  const std::unique_ptr<CongestionControl> control_;
  const CreditKind credit_kind_;
  const std::uint64_t packets_;
  const std::uint32_t payload_;
  const std::uint32_t last_payload_;
  const std::uint32_t header_;
  const std::uint64_t quantum_;
  const double window_;
  const Instant rto_;  // 0: none
  const Instant base_rtt_;
  std::uint64_t first_ = 0;  // all before have come
  std::uint64_t next_ = 0;   // never sent so far
  double in_flight_ = 0;     // bytes
  double backlog_;           // bytes never sent
  double lost_bytes_ = 0;    // bytes to repeat
  std::uint64_t received_ = 0;
  double credit_;               // bytes or packets
  std::uint64_t granted_ = 0;   // by the receiver so far
  bool is_speculating_ = true;  // no answer so far
  Instant requested_at_ = -(Instant{1} << 60);
  std::vector<Sent> sent_;  // a ring, by number
  std::priority_queue<std::uint64_t, std::vector<std::uint64_t>, std::greater<>> lost_;
  RingQueue<Departure> departures_;  // in order; those answered since are skipped
};

class SelectiveReceiver final : public Receiver {
 public:
  // At most one of `pulls` and `pacer` is there.
  SelectiveReceiver(const TransportSpec& spec, const MessageView& message, PullQueue* pulls,
                    CreditPacer* pacer);

  void on_packet(Instant now, const Packet& packet, std::vector<Packet>& answers) override;
  bool has_all() const override { return set_.expected() >= packets_; }

 private:
  void answer(const Packet& packet, PacketKind kind, Instant now, bool asks_pull,
              std::vector<Packet>& answers);
  void find_gaps(const Packet& packet, std::vector<Packet>& answers);

  const std::uint64_t packets_;
  const std::uint32_t ack_bytes_;
  const std::uint64_t ack_every_;  // bytes
  const std::uint32_t packets_per_ack_;
  const std::uint32_t reorder_;  // 0: gaps mean nothing
  PullQueue* const pulls_;
  CreditPacer* const pacer_;
  const std::uint32_t number_;  // in one of them
  ReceivedSet set_;
  ReceivedSet named_;  // gaps that a NACK has named
  std::uint64_t highest_ = 0;
  std::uint64_t received_ = 0;    // bytes, each packet once
  std::uint64_t unanswered_ = 0;  // bytes
  std::uint32_t unanswered_packets_ = 0;
  bool answers_when_whole_ = false;
};

}  // namespace stepsim
