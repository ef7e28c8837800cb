#include "sim/network/transport/controls/timely.h"

#include <algorithm>

namespace stepsim {

void Timely::on_ack(const AckSeen& ack) {
  if (ack.acknowledged <= window_end_) return;
  const auto rtt = static_cast<double>(ack.delay);
  if (window_end_ != 0) {
    difference_ = (1 - settings_.smoothing) * difference_ + settings_.smoothing * (rtt - last_rtt_);
    const double gradient = difference_ / static_cast<double>(settings_.least_rtt.count());
    const auto high = static_cast<double>(settings_.high.count());
    double factor = 1;
    if (rtt >= static_cast<double>(settings_.low.count())) {
      if (rtt > high) {
        factor = 1 - settings_.decrease * (1 - high / rtt);
      } else if (settings_.patched) {
        factor = 0;
      } else if (gradient > 0) {
        factor = std::max(0.0, 1 - settings_.decrease * gradient);
      }
    }
    if (factor == 1) {
      const Bandwidth more =
          increases_ < settings_.hyper_after ? settings_.additive : settings_.hyper;
      rate_ += more.value();
      ++increases_;
    } else {
      rate_ = settings_.patched && rtt <= high ? patched_rate(gradient, rtt) : rate_ * factor;
      increases_ = 0;
    }
    rate_ = std::clamp(rate_, settings_.least.value(), line_rate_);
  }
  if (ack.next > window_end_) {
    window_end_ = ack.next;
    last_rtt_ = rtt;
  }
}

double Timely::patched_rate(double gradient, double rtt) const {
  const double weight = std::clamp(2 * gradient + 0.5, 0.0, 1.0);
  const auto reference = static_cast<double>(settings_.low.count());
  return settings_.additive.value() * (1 - weight) +
         rate_ * (1 - settings_.decrease * weight * (rtt - reference) / reference);
}

}  // namespace stepsim
