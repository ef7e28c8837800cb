#include "sim/network/transport/controls/swift.h"

#include <algorithm>
#include <cmath>

namespace stepsim {

double Swift::target(double window) const {
  const auto range = static_cast<double>(settings_.fs_range.count());
  const double a = range / (1 / std::sqrt(settings_.fs_least) - 1 / std::sqrt(settings_.fs_most));
  const double b = -a / std::sqrt(settings_.fs_most);
  double packets = window / packet_;
  if (settings_.whole_packets) packets = std::floor(packets);
  const double scaling = packets > 0 ? std::clamp(a / std::sqrt(packets) + b, 0.0, range) : range;
  return static_cast<double>(settings_.base.count()) +
         hops_ * static_cast<double>(settings_.hop.count()) + scaling;
}

void Swift::on_ack(const AckSeen& ack) {
  const double before = window_;
  const auto delay = static_cast<double>(ack.delay);
  may_decrease_ = static_cast<double>(ack.now - last_decrease_) >= rtt_;
  if (rtt_ > 0) {
    deviation_ += (std::abs(delay - rtt_) - deviation_) / 4;
    rtt_ += (delay - rtt_) / 8;
  } else {
    rtt_ = delay;
    deviation_ = delay / 2;
  }
  timeouts_ = 0;
  const double aim = target(window_);
  if (delay < aim) {
    const double part = window_ >= packet_ ? packet_ / window_ : 1;
    window_ += settings_.increase * ack.newly * part;
  } else if (may_decrease_) {
    window_ *=
        std::max(1 - settings_.decrease * (delay - aim) / delay, 1 - settings_.most_decrease);
  }
  bound(ack.now, before);
}

void Swift::on_loss(Instant now) {
  if (!may_decrease_) return;
  const double before = window_;
  window_ *= 1 - settings_.most_decrease;
  bound(now, before);
}

void Swift::on_timeout(Instant now, double) {
  const double before = window_;
  if (++timeouts_ >= settings_.resets_after) {
    window_ = static_cast<double>(settings_.least_window.value());
  } else if (static_cast<double>(now - last_decrease_) >= rtt_) {
    window_ *= 1 - settings_.most_decrease;
  }
  bound(now, before);
}

void Swift::bound(Instant now, double before) {
  window_ = std::clamp(window_, static_cast<double>(settings_.least_window.value()),
                       static_cast<double>(settings_.most_window.value()));
  if (window_ < before) last_decrease_ = now;
}

Instant Swift::pace() const {
  return window_ < packet_ ? static_cast<Instant>(rtt_ * packet_ / window_) : 0;
}

}  // namespace stepsim
