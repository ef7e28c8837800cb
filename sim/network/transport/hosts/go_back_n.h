// Go-back-N, as RoCEv2 network cards do it: packets leave at the rate and within the window of a
// congestion control; the receiver takes only the packet that it expects. A gap is answered by one
// NACK (again only after `nack_interval` or for another gap), at which the sender starts again from
// there. Sequences are bytes.
//
// With `trailing_packets` so many full packets follow the message and are not waited for (htsim's
// RoCE). Without `rto` nothing is repeated unless a NACK comes, as in the RDMA models of ns-3.

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/network/transport/transport.h"
#include "sim/network/transport/transport_spec.h"

namespace stepsim {

class GoBackNSender final : public Sender {
 public:
  // `window`: bytes of payload; 0: none.
  GoBackNSender(const TransportSpec& spec, const MessageView& message, double window,
                std::unique_ptr<CongestionControl> control);

  Instant ready_at(Instant now) override;
  void send(Instant now, std::uint32_t waiting, Packet& packet) override;
  void on_answer(Instant now, const Packet& answer, const Telemetry* telemetry) override;
  Instant timer() const override;
  void on_timer(Instant now, std::vector<Packet>& control_packets) override;
  bool is_finished() const override { return acknowledged_ >= bytes_; }
  bool wants_telemetry() const override { return control_->wants_telemetry(); }

 private:
  bool is_window_full() const;
  Instant spacing(double rate) const;
  void set_rate();

  const std::unique_ptr<CongestionControl> control_;
  const MessageView message_;
  const std::uint64_t bytes_;
  const std::uint64_t total_;  // with what trails
  const std::uint32_t payload_;
  const std::uint32_t header_;
  const bool pads_;
  const Instant unit_;
  const double window_;
  const bool window_follows_rate_;
  const Instant rto_;       // 0: none
  const bool notes_marks_;  // a mark stands for a notification
  std::uint64_t acknowledged_ = 0;
  std::uint64_t next_ = 0;
  std::uint64_t furthest_ = 0;
  Instant next_at_ = 0;
  Instant progress_at_ = 0;
  std::uint32_t timeouts_ = 0;
  std::uint32_t last_bytes_ = 0;  // of the last packet
  double rate_;                   // that next_at_ was computed with
};

class GoBackNReceiver final : public Receiver {
 public:
  GoBackNReceiver(const TransportSpec& spec, const MessageView& message);

  void on_packet(Instant now, const Packet& packet, std::vector<Packet>& answers) override;
  bool has_all() const override { return expected_ >= bytes_; }

 private:
  const std::uint64_t bytes_;
  const std::uint32_t ack_bytes_;
  const std::uint32_t packets_per_ack_;
  const Instant nack_interval_;
  const Instant notification_interval_;  // 0: none
  std::uint64_t expected_ = 0;
  std::uint32_t unanswered_ = 0;
  std::uint64_t last_nack_ = kNever;
  Instant nack_again_at_ = 0;
  Instant notify_again_at_ = 0;
};

}  // namespace stepsim
