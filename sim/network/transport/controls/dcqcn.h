// DCQCN's rate machine (Zhu et al., SIGCOMM 2015): current rate, target rate and alpha.
//
//   cut        target = rate; rate *= 1 - alpha/2
//   alpha      (1-g) alpha + g for an interval with a notification, (1-g) alpha without
//   increase   at a timer, and each `increase_bytes` sent: first `fast_stages` halvings of the
//              distance to the target, then the target rises by `additive`, then by `hyper`
//
// The paper cuts at each notification (a CNP). The RDMA model of ns-3 (HPCC, SimAI, astra-sim) has
// no CNP: it looks every `decrease_interval`, one ns after alpha, whether a mark came; the first
// one starts both clocks and cuts nothing; there is no byte counter, `hyper` is added once a stage,
// and without `clamp_target` the target is lowered only if the rate has risen since the last cut.
// Alpha is brought up to date when it is needed, so an idle interval costs nothing.

#pragma once

#include <cstdint>
#include <optional>

#include "sim/base/units.h"
#include "sim/network/transport/transport.h"

namespace stepsim {

struct DcqcnSettings {
  double gain = 1.0 / 256;
  double initial_alpha = 1;
  Duration alpha_interval{55'000'000};
  std::optional<Duration> decrease_interval{};  // unset: cuts at each notification
  Duration increase_interval{55'000'000};
  std::optional<Bytes> increase_bytes{Bytes(10'000'000)};
  std::uint32_t fast_stages = 5;
  bool clamp_target = true;
  Bandwidth additive{40e6 / 8};
  Bandwidth hyper{400e6 / 8};
  Bandwidth least{10e6 / 8};
  std::optional<Duration> notification_interval{
      Duration(50'000'000)};  // unset: each answer says it
};

class Dcqcn final : public CongestionControl {
 public:
  Dcqcn(const DcqcnSettings& settings, double line_rate)
      : CongestionControl(line_rate),
        settings_(settings),
        line_rate_(line_rate),
        target_(line_rate),
        alpha_(settings.initial_alpha) {}

  void on_notification(Instant now) override;
  void on_sent(Instant now, double bytes) override;
  Instant timer() const override { return std::min(check_at_, increase_at_); }
  void on_timer(Instant now) override;

  double alpha_at(Instant now) {
    advance_alpha(now);
    return alpha_;
  }

 private:
  static constexpr Instant kCheckDelay = 1000;

  void advance_alpha(Instant now);
  void cut(Instant now);
  void increase();

  const DcqcnSettings settings_;
  const double line_rate_;
  double target_;
  double alpha_;
  bool was_notified_ = false;  // ever
  bool is_notified_ = false;   // in this interval of alpha
  Instant alpha_from_ = 0;
  std::int64_t alpha_intervals_ = 0;  // ended since alpha_from_
  Instant started_ = 0;               // first notification
  Instant check_at_ = kNever;
  Instant increase_at_ = kNever;
  std::uint32_t timer_stage_ = 0;
  std::uint32_t byte_stage_ = 0;
  double sent_ = 0;  // towards increase_bytes
};

}  // namespace stepsim
