// Swift (Kumar et al., SIGCOMM 2020): the window follows the round-trip delay towards a target
//
//   target = base + hops x hop + clamp(a / sqrt(window in packets) + b, 0, fs_range)
//   a = fs_range / (1/sqrt(fs_least) - 1/sqrt(fs_most)),  b = -a / sqrt(fs_most)
//
// Below it, window += increase x acknowledged / window (windows below a packet: += increase x
// acknowledged), both in packets; above it, at most once a round trip, window *= max(1 - decrease
// (delay - target) / delay, 1 - most_decrease). A window below one packet is a pace. Only the
// fabric's window, not that of the hosts. `whole_packets`: the window of the target is cut to whole
// packets, as csg-htsim does. The values for base, hop and scaling are htsim's: the paper names
// none.

#pragma once

#include <cstdint>

#include "sim/base/units.h"
#include "sim/network/transport/transport.h"

namespace stepsim {

struct SwiftSettings {
  Duration base{20'000'000};
  Duration hop{3'053'435};
  Duration fs_range{100'000'000};
  double fs_least = 0.1;
  double fs_most = 100;
  double increase = 1;
  double decrease = 0.8;
  double most_decrease = 0.5;
  Bytes least_window{10};
  Bytes most_window{4'096'000};
  std::uint32_t resets_after = 5;  // time-outs in a row
  bool whole_packets = false;
};

class Swift final : public CongestionControl {
 public:
  Swift(const SwiftSettings& settings, double line_rate, double window, double packet,
        std::uint32_t hops)
      : CongestionControl(line_rate, window), settings_(settings), packet_(packet), hops_(hops) {}

  void on_ack(const AckSeen& ack) override;
  void on_loss(Instant now) override;
  void on_timeout(Instant now, double bytes) override;

  double target(double window) const;
  // Returns the time between packets; 0 from one packet on.
  Instant pace() const;
  double smoothed_rtt() const { return rtt_; }
  double rtt_deviation() const { return deviation_; }

 private:
  void bound(Instant now, double before);

  const SwiftSettings settings_;
  const double packet_;
  const std::uint32_t hops_;
  double rtt_ = 0;
  double deviation_ = 0;
  Instant last_decrease_ = 0;
  std::uint32_t timeouts_ = 0;
  bool may_decrease_ = true;
};

}  // namespace stepsim
