#include "sim/network/transport/controls/hpcc.h"

#include <algorithm>
#include <cmath>

namespace stepsim {
namespace {

// Returns the counter as a header of whole units holds it.
double in_whole(std::uint64_t counter, Bytes unit) {
  if (unit <= Bytes(1)) return static_cast<double>(counter);
  const auto each = static_cast<std::uint64_t>(unit.value());
  return static_cast<double>(counter / each * each);
}

}  // namespace

void Hpcc::on_ack(const AckSeen& ack) {
  if (ack.telemetry == nullptr) return;
  const bool ends_window = ack.acknowledged > window_end_;
  if (!ends_window && !settings_.reacts_to_each) return;
  if (ends_window && window_end_ == 0) {
    last_ = *ack.telemetry;
  } else if (measure(*ack.telemetry)) {
    update(utilisation_, ends_window);
  }
  if (ends_window) window_end_ = std::max(window_end_, ack.next);
}

// Returns whether there was something to measure.
bool Hpcc::measure(const Telemetry& now) {
  double fullest = 0;
  double over = 0;
  for (std::uint32_t i = 0; i < now.hops; ++i) {
    const Telemetry::Hop& hop = now.hop[i];
    const Telemetry::Hop& before = last_.hop[i];
    const auto elapsed = static_cast<double>(hop.at - before.at);
    const double sent =
        in_whole(hop.sent, settings_.byte_unit) - in_whole(before.sent, settings_.byte_unit);
    const double queue = std::min(in_whole(hop.queue, settings_.queue_unit),
                                  in_whole(before.queue, settings_.queue_unit));
    const double whole = hop.rate * base_rtt_ * 1e-12;  // bytes in flight at full use
    const double used = elapsed > 0 ? sent / (hop.rate * elapsed * 1e-12) + queue / whole : 0;
    if (used > fullest) {
      fullest = used;
      over = elapsed;
    }
  }
  last_ = now;
  if (now.hops == 0) return false;
  const double weight = std::min(over, base_rtt_) / base_rtt_;
  utilisation_ = (1 - weight) * utilisation_ + weight * fullest;
  return true;
}

void Hpcc::update(double utilisation, bool ends_window) {
  const double excess = utilisation / settings_.target;
  const bool multiplies = excess >= 1 || stage_ >= settings_.most_stages;
  const double kept = multiplies ? reference_ / excess : reference_;
  rate_ = std::clamp(kept + settings_.increase.value(), settings_.least.value(), line_rate_);
  if (!ends_window) return;
  reference_ = rate_;
  stage_ = multiplies ? 0 : stage_ + 1;
}

}  // namespace stepsim
