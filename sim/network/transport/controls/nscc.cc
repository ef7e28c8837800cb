#include "sim/network/transport/controls/nscc.h"

#include <algorithm>
#include <cmath>

namespace stepsim {
namespace {

constexpr double kReferenceRate = 12.5e9;  // bytes/s
constexpr double kReferenceRtt = 12e6;     // ps
constexpr double kLargestWindow = 1.5;     // of the bandwidth-delay product
constexpr double kFarAbove = 5;            // base round trips

}  // namespace

NsccParameters nscc_parameters(const NsccSettings& settings, double line_rate, Instant base_rtt,
                               double payload, bool trims) {
  const auto rtt = static_cast<double>(base_rtt);
  const double target =
      settings.target ? static_cast<double>(settings.target->count()) : rtt * (trims ? 0.75 : 1);
  const double a = rtt * line_rate / (kReferenceRtt * kReferenceRate);
  const double b = target / kReferenceRtt;
  return {.a = a,
          .b = b,
          .target = target,
          .alpha = 4 * payload * a * b / target,
          .fair_increase = 5 * payload * a,
          .eta = 0.15 * payload * a,
          .fast_scale = a / 4};
}

Nscc::Nscc(const NsccSettings& settings, const NsccParameters& parameters, double line_rate,
           double window, Instant base_rtt, double packet)
    : CongestionControl(line_rate, window),
      settings_(settings),
      p_(parameters),
      line_rate_(line_rate),
      network_rtt_(static_cast<double>(base_rtt)),
      packet_(packet),
      base_rtt_(network_rtt_),
      most_window_(kLargestWindow * network_rtt_ * line_rate * 1e-12) {}

void Nscc::see_round_trip(Instant delay) {
  if (static_cast<double>(delay) >= base_rtt_) return;
  base_rtt_ = static_cast<double>(delay);
  most_window_ = kLargestWindow * base_rtt_ * line_rate_ * 1e-12;
}

void Nscc::see_delay(double delay, bool marked) {
  double sample = delay;
  double weight = settings_.delay_weight;
  if (!marked && delay > p_.target) {
    sample = base_rtt_ / 4;
  } else if (delay > kFarAbove * base_rtt_) {
    weight = std::min(weight, 0.0125);
  }
  mean_delay_ += weight * (sample - mean_delay_);
}

void Nscc::on_ack(const AckSeen& ack) {
  achieved_ += ack.newly;
  received_ += ack.newly;
  ignored_ += ack.newly;
  double delay = mean_delay_;
  if (ack.has_delay) {
    see_round_trip(ack.delay);
    delay = static_cast<double>(ack.delay) - base_rtt_;
    see_delay(delay, ack.marked);
  }
  if (quick_adapt(ack.now, false, ack.marked, delay, ack.in_flight)) return;
  if (!ack.marked) {
    if (delay >= p_.target) {
      pending_ += p_.fair_increase * ack.newly;
    } else {
      increase(ack.newly, delay);
    }
  } else if (delay >= p_.target) {
    is_fast_ = false;
    fast_bytes_ = 0;
    if (mean_delay_ > p_.target && static_cast<double>(ack.now - last_decrease_) > base_rtt_) {
      window_ *= decrease_factor(mean_delay_);
      last_decrease_ = ack.now;
    }
  }
  bound();
  if (received_ > settings_.adjust_packets * packet_ ||
      static_cast<double>(ack.now - last_adjust_) > network_rtt_) {
    adjust(ack.now);
  }
  bound();
}

double Nscc::decrease_factor(double mean) const {
  return std::max(1 - settings_.gamma * (mean - p_.target) / mean, 0.5);
}

void Nscc::increase(double newly, double delay) {
  if (delay < static_cast<double>(settings_.fast_increase_below.count())) {
    fast_bytes_ += newly;
    is_fast_ = is_fast_ || fast_bytes_ > window_;
  } else {
    fast_bytes_ = 0;
    is_fast_ = false;
  }
  if (is_fast_) {
    window_ += newly * p_.fast_scale;
  } else {
    pending_ += p_.alpha * newly * (p_.target - delay);
  }
}

void Nscc::adjust(Instant now) {
  window_ += pending_ / window_;
  if (static_cast<double>(now - last_adjust_) >= network_rtt_) {
    window_ += p_.eta;
    last_adjust_ = now;
  }
  pending_ = 0;
  received_ = 0;
}

bool Nscc::quick_adapt(Instant now, bool is_loss, bool marked, double delay, double in_flight) {
  bool holds = false;
  if (ignored_ < to_ignore_ && marked) {
    holds = true;
  } else if (now > period_end_) {
    const bool asks = was_trimmed_ || is_loss || delay > settings_.quick_adapt_targets * p_.target;
    if (period_end_ != 0 && asks && achieved_ < most_window_ / settings_.quick_adapt_gate) {
      window_ = std::max(achieved_, packet_);
      to_ignore_ = in_flight;
      ignored_ = 0;
      was_trimmed_ = false;
      holds = true;
    }
    achieved_ = 0;
    period_end_ = now + static_cast<Instant>(base_rtt_ + p_.target);
  }
  if (holds) {
    pending_ = 0;
    received_ = 0;
  }
  return holds;
}

void Nscc::on_trimmed(const TrimSeen& trim) {
  see_round_trip(trim.delay);
  ignored_ += trim.bytes;
  see_delay(network_rtt_, true);
  was_trimmed_ = true;
  if (quick_adapt(trim.now, true, true, 0, trim.in_flight)) return;
  window_ -= trim.bytes;
  bound();
}

void Nscc::on_timeout(Instant, double bytes) {
  window_ = std::max(window_ - bytes, packet_);
}

void Nscc::bound() {
  window_ = std::max(std::min(window_, most_window_), packet_);
}

}  // namespace stepsim
