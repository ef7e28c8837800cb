// HPCC (Li et al., SIGCOMM 2019, algorithm 1): the switches tell what left each port and what is
// queued there (INT); the sender estimates the utilisation U of the fullest link and sets
//
//   rate = reference / (U / target) + increase     if U >= target, or after `most_stages` windows
//   rate = reference + increase                    otherwise
//
// to each answer; the reference follows once a window. Rates stand for windows: W = rate x base
// RTT, so `increase` is W_AI / base RTT. The paper's most_stages is 5; the RDMA model of ns-3 has
// 0, and the counters of its headers are whole units (`byte_unit`, `queue_unit`, 0: exact).

#pragma once

#include <cstdint>

#include "sim/base/units.h"
#include "sim/network/transport/transport.h"

namespace stepsim {

struct HpccSettings {
  double target = 0.95;
  std::uint32_t most_stages = 5;
  Bandwidth increase{40e6 / 8};
  Bandwidth least{100e6 / 8};
  bool reacts_to_each = true;  // false: only once a window
  Bytes byte_unit{0};
  Bytes queue_unit{0};
};

class Hpcc final : public CongestionControl {
 public:
  Hpcc(const HpccSettings& settings, double line_rate, Instant base_rtt)
      : CongestionControl(line_rate),
        settings_(settings),
        line_rate_(line_rate),
        base_rtt_(static_cast<double>(base_rtt)),
        reference_(line_rate) {}

  void on_ack(const AckSeen& ack) override;
  bool shifts_next_packet() const override { return true; }
  bool wants_telemetry() const override { return true; }
  double utilisation() const { return utilisation_; }
  // One update of the rule, with U as it is.
  void update(double utilisation, bool ends_window);
  void set_reference(double rate) { reference_ = rate; }

 private:
  bool measure(const Telemetry& now);

  const HpccSettings settings_;
  const double line_rate_;
  const double base_rtt_;
  double reference_;
  double utilisation_ = 1;
  std::uint32_t stage_ = 0;
  std::uint64_t window_end_ = 0;
  Telemetry last_;
};

}  // namespace stepsim
