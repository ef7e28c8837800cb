// NSCC, the sender's congestion control of UEC 1.0, as uet-htsim 40ccb05 computes it. Let a be the
// network's bandwidth-delay product over 100 Gb/s x 12 us, b the target delay over 12 us:
//
//   unmarked, delay >= target      inc += fi x newly                        fi = 5 MSS a
//   unmarked, delay <  target      inc += alpha x newly x (target - delay)  alpha = 4 MSS a b /
//   target
//                                  (window += fi_scale x newly once the delay stayed below 1 us for
//                                  a window; fi_scale = a / 4)
//   marked,   delay >= target      once a round trip, if the mean delay is above the target:
//                                  window *= max(1 - gamma (mean - target) / mean, 1/2)
//   marked,   delay <  target      nothing (the sender takes another path)
//   after 8 packets or a round trip: window += inc / window; once a round trip: += eta (0.15 MSS a)
//   trimmed packet                 window -= its bytes, unless quick adapt applies
//   quick adapt                    a period (round trip + target) after the last one: if a trim
//   came
//                                  or the delay is above 4 targets, and less than 1/gate of the
//                                  largest window arrived: window = what arrived
//
// Delay is beyond the base round trip, which falls to the least seen. The largest window is 1.5
// times the bandwidth-delay product. Derived values are data of the spec, not fields of their own.

#pragma once

#include <cstdint>
#include <optional>

#include "sim/base/units.h"
#include "sim/network/transport/transport.h"

namespace stepsim {

struct NsccSettings {
  std::optional<Duration> target{};  // unset: 0.75 of the base round trip with trimming, 1 without
  double gamma = 0.8;
  double delay_weight = 0.0125;
  double quick_adapt_gate = 8;
  double quick_adapt_targets = 4;
  Duration fast_increase_below{1'000'000};
  double adjust_packets = 8;
};

struct NsccParameters {
  double a, b;
  double target;         // ps
  double alpha;          // bytes per ps
  double fair_increase;  // bytes
  double eta;            // bytes
  double fast_scale;
};

NsccParameters nscc_parameters(const NsccSettings& settings, double line_rate, Instant base_rtt,
                               double payload, bool trims);

class Nscc final : public CongestionControl {
 public:
  // `packet`: on the wire.
  Nscc(const NsccSettings& settings, const NsccParameters& parameters, double line_rate,
       double window, Instant base_rtt, double packet);

  void on_ack(const AckSeen& ack) override;
  void on_trimmed(const TrimSeen& trim) override;
  void on_timeout(Instant now, double bytes) override;

  // One step of the rule for marked answers, for a mean delay beyond the base round trip.
  double decrease_factor(double mean) const;
  double most_window() const { return most_window_; }

 private:
  bool quick_adapt(Instant now, bool is_loss, bool marked, double delay, double in_flight);
  void see_round_trip(Instant delay);
  void see_delay(double delay, bool marked);
  void increase(double newly, double delay);
  void adjust(Instant now);
  void bound();

  const NsccSettings settings_;
  const NsccParameters p_;
  const double line_rate_;
  const double network_rtt_;
  const double packet_;
  double base_rtt_;
  double most_window_;
  double mean_delay_ = 0;
  double pending_ = 0;   // inc
  double received_ = 0;  // since the last adjustment
  double achieved_ = 0;  // in this period of quick adapt
  double ignored_ = 0;
  double to_ignore_ = 0;
  double fast_bytes_ = 0;
  bool is_fast_ = false;
  bool was_trimmed_ = false;
  Instant period_end_ = 0;
  Instant last_decrease_ = 0;
  Instant last_adjust_ = 0;
};

}  // namespace stepsim
