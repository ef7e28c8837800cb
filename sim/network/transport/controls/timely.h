// TIMELY (Mittal et al., SIGCOMM 2015, algorithm 1): the rate follows the gradient of the
// round-trip time, one sample a window; the first sample is only remembered. Below `low` it rises,
// above `high` it falls whatever the gradient. After `hyper_after` increases in a row it rises by
// `hyper`. With `patched` (Zhu et al., CoNEXT 2016, 4.3) increase and decrease are blended by a
// weight between gradients of -1/4 and 1/4, which has a fixed point.

#pragma once

#include <cstdint>

#include "sim/base/units.h"
#include "sim/network/transport/transport.h"

namespace stepsim {

struct TimelySettings {
  Duration low{50'000'000};
  Duration high{500'000'000};
  Duration least_rtt{20'000'000};
  double smoothing = 0.875;  // weight of a new difference
  double decrease = 0.8;
  Bandwidth additive{10e6 / 8};
  Bandwidth hyper{50e6 / 8};
  std::uint32_t hyper_after = 4;
  Bandwidth least{10e6 / 8};
  bool patched = false;
};

class Timely final : public CongestionControl {
 public:
  Timely(const TimelySettings& settings, double line_rate)
      : CongestionControl(line_rate), settings_(settings), line_rate_(line_rate) {}

  void on_ack(const AckSeen& ack) override;
  void set_rate(double rate) { rate_ = rate; }

 private:
  double patched_rate(double gradient, double rtt) const;

  const TimelySettings settings_;
  const double line_rate_;
  std::uint64_t window_end_ = 0;
  double last_rtt_ = 0;
  double difference_ = 0;
  std::uint32_t increases_ = 0;
};

}  // namespace stepsim
