// A stream of segments with cumulative acknowledgements, as TCP and csg-htsim's Swift move a
// message: the window of a congestion control slides over the bytes; three answers that acknowledge
// nothing new mean a loss, and what is missing is sent again, one segment an answer, until all that
// was out then is acknowledged (RFC 6675, a bitmap of 64 segments in each answer); without an
// answer for a time-out the sender starts again from there. The receiver keeps what comes out of
// order. It answers every `packets_per_ack` segments or after `delayed_ack`, at once for gaps and
// at each change of the marks (RFC 8257, 3.2).
//
// `handshakes` round trips of small packets come first. Of each message at most `host_queue`
// packets wait in the host, from where their round-trip time counts. A Swift window below one
// packet is a pace. Not modelled: Nagle, the receiver's window.

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/network/packets/packet_port.h"
#include "sim/network/transport/received_set.h"
#include "sim/network/transport/transport.h"
#include "sim/network/transport/transport_spec.h"

namespace stepsim {

class StreamSender final : public Sender {
 public:
  // `swift`: the control if it is that one, which paces; else nullptr.
  StreamSender(const TransportSpec& spec, const MessageView& message,
               std::unique_ptr<CongestionControl> control, const Swift* swift);

  Instant ready_at(Instant now) override;
  void send(Instant now, std::uint32_t waiting, Packet& packet) override;
  void on_answer(Instant now, const Packet& answer, const Telemetry* telemetry) override;
  Instant timer() const override;
  void on_timer(Instant now, std::vector<Packet>& control_packets) override;
  bool is_finished() const override { return acknowledged_ >= bytes_; }

 private:
  struct Segment {
    std::uint64_t sequence;
    Instant stamp;
  };

  std::uint64_t payload_at(std::uint64_t sequence) const;
  void fill(Instant now);
  void see_delay(Instant delay);
  void see_received(const Packet& answer);
  bool repeat_missing(Instant now);

  const std::unique_ptr<CongestionControl> control_;
  const Swift* const swift_;
  const std::uint64_t bytes_;
  const std::uint64_t payload_;
  const std::uint32_t header_;
  const std::uint32_t host_queue_;
  const Instant least_rto_;  // 0: no time-outs
  std::uint32_t handshakes_left_;
  bool waits_for_handshake_ = false;
  RingQueue<Segment> waiting_;  // in the host
  std::uint32_t waiting_count_ = 0;
  std::uint64_t acknowledged_ = 0;
  std::uint64_t next_ = 0;
  std::uint64_t furthest_ = 0;
  std::uint64_t recover_ = 0;  // recovery ends when this is acknowledged
  ReceivedSet received_;       // segments, as answers tell
  std::uint64_t furthest_received_ = 0;
  std::uint64_t repaired_ = 0;  // segments below were looked at in this recovery
  std::uint32_t repeated_answers_ = 0;
  std::uint32_t recovery_answers_ = 0;
  bool is_recovering_ = false;
  double inflation_ = 0;
  Instant last_sent_ = 0;
  double rtt_ = 0;
  double deviation_ = 0;
  Instant rto_;
  Instant rto_from_ = kNever;
};

class StreamReceiver final : public Receiver {
 public:
  StreamReceiver(const TransportSpec& spec, const MessageView& message);

  void on_packet(Instant now, const Packet& packet, std::vector<Packet>& answers) override;
  Instant timer() const override { return late_at_; }
  void on_timer(Instant now, std::vector<Packet>& answers) override;
  bool has_all() const override { return cumulative() >= bytes_; }

 private:
  std::uint64_t cumulative() const;
  void answer(const Packet& packet, std::vector<Packet>& answers);

  const std::uint64_t bytes_;
  const std::uint64_t payload_;
  const std::uint32_t ack_bytes_;
  const std::uint32_t packets_per_ack_;
  const Instant delay_;
  ReceivedSet set_;  // segments
  Packet last_;      // not yet answered
  std::uint32_t unanswered_ = 0;
  bool was_marked_ = false;
  Instant late_at_ = kNever;
};

}  // namespace stepsim
