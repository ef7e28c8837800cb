#include "sim/network/transport/controls/dcqcn.h"

#include <algorithm>
#include <cmath>

namespace stepsim {

void Dcqcn::advance_alpha(Instant now) {
  if (!was_notified_) return;
  const std::int64_t ended = (now - alpha_from_) / settings_.alpha_interval.count();
  if (ended == alpha_intervals_) return;
  const double keep = 1 - settings_.gain;
  alpha_ *= std::pow(keep, static_cast<double>(ended - alpha_intervals_));
  if (is_notified_) {  // in the first of these intervals
    alpha_ += settings_.gain * std::pow(keep, static_cast<double>(ended - alpha_intervals_ - 1));
  }
  is_notified_ = false;
  alpha_intervals_ = ended;
}

void Dcqcn::on_notification(Instant now) {
  if (!settings_.decrease_interval) {
    advance_alpha(now);
    cut(now);
    alpha_ = (1 - settings_.gain) * alpha_ + settings_.gain;
    was_notified_ = true;
    alpha_from_ = now;
    alpha_intervals_ = 0;
    return;
  }
  if (!was_notified_) {
    was_notified_ = true;
    alpha_ = settings_.initial_alpha;
    alpha_from_ = now;
    started_ = now;
    target_ = rate_;
  } else {
    advance_alpha(now);
    is_notified_ = true;
  }
  if (check_at_ != kNever) return;
  const Instant interval = settings_.decrease_interval->count();
  const Instant first = started_ + interval + kCheckDelay;
  const Instant after = now < first ? 0 : (now - first) / interval + 1;
  check_at_ = first + after * interval;
}

void Dcqcn::cut(Instant now) {
  if (settings_.clamp_target || timer_stage_ + byte_stage_ > 0) target_ = rate_;
  rate_ = std::max(settings_.least.value(), rate_ * (1 - alpha_ / 2));
  timer_stage_ = 0;
  byte_stage_ = 0;
  sent_ = 0;
  increase_at_ = now + settings_.increase_interval.count();
}

void Dcqcn::on_sent(Instant, double bytes) {
  if (!settings_.increase_bytes || increase_at_ == kNever) return;
  sent_ += bytes;
  if (sent_ < static_cast<double>(settings_.increase_bytes->value())) return;
  sent_ = 0;
  increase();
  ++byte_stage_;
}

void Dcqcn::on_timer(Instant now) {
  if (now >= check_at_) {
    check_at_ = kNever;
    advance_alpha(now);
    cut(now);
    return;
  }
  if (now < increase_at_) return;
  increase_at_ = now + settings_.increase_interval.count();
  increase();
  ++timer_stage_;
}

void Dcqcn::increase() {
  const std::uint32_t fast = settings_.fast_stages;
  const std::uint32_t both =
      settings_.increase_bytes ? std::min(timer_stage_, byte_stage_) : timer_stage_;
  if (std::max(timer_stage_, byte_stage_) >= fast) {
    const double steps = settings_.increase_bytes ? both - fast : 1;
    const double more = both > fast ? steps * settings_.hyper.value() : settings_.additive.value();
    target_ = std::min(line_rate_, target_ + more);
  }
  rate_ = (rate_ + target_) / 2;
}

}  // namespace stepsim
