#include "sim/network/transport/hosts/go_back_n.h"

#include <algorithm>
#include <cmath>

namespace stepsim {
namespace {

constexpr std::uint32_t kNotificationBytes = 64;
constexpr std::uint32_t kMostBackoff = 7;  // doublings of the time-out

std::uint64_t message_bytes(const TransportSpec& spec, const MessageView& message) {
  const std::int64_t payload = spec.payload.value();
  if (!spec.pads_last_packet) return static_cast<std::uint64_t>(message.bytes);
  return static_cast<std::uint64_t>(((message.bytes - 1) / payload + 1) * payload);
}

bool has_notifications(const TransportSpec& spec) {
  return spec.kind == TransportKind::kDcqcn && spec.dcqcn.notification_interval.has_value();
}

}  // namespace

GoBackNSender::GoBackNSender(const TransportSpec& spec, const MessageView& message, double window,
                             std::unique_ptr<CongestionControl> control)
    : control_(std::move(control)),
      message_(message),
      bytes_(message_bytes(spec, message)),
      total_(bytes_ + spec.trailing_packets * static_cast<std::uint64_t>(spec.payload.value())),
      payload_(static_cast<std::uint32_t>(spec.payload.value())),
      header_(static_cast<std::uint32_t>(spec.header.value())),
      pads_(spec.pads_last_packet),
      unit_(spec.time_unit.count()),
      window_(window),
      window_follows_rate_(spec.window_follows_rate),
      rto_(spec.rto.value_or(Duration(0)).count()),
      notes_marks_(!has_notifications(spec)),
      rate_(control_->rate()) {}

bool GoBackNSender::is_window_full() const {
  if (window_ == 0) return false;
  const double window = window_follows_rate_
                            ? std::max(1.0, std::floor(window_ * control_->rate() / message_.rate))
                            : window_;
  return next_ > acknowledged_ && static_cast<double>(next_ - acknowledged_) >= window;
}

Instant GoBackNSender::ready_at(Instant) {
  if (next_ >= total_ || is_finished() || is_window_full()) return kNever;
  return next_at_;
}

Instant GoBackNSender::spacing(double rate) const {
  return in_units(std::ceil(last_bytes_ * 1e12 / rate), unit_);
}

void GoBackNSender::send(Instant now, std::uint32_t, Packet& packet) {
  const std::uint64_t left = total_ - next_;
  packet.payload = static_cast<std::uint32_t>(std::min<std::uint64_t>(payload_, left));
  if (pads_) packet.payload = payload_;
  packet.bytes = packet.payload + header_;
  packet.sequence = next_;
  packet.stamp = now;
  packet.again = next_ < furthest_;
  packet.asks = next_ + packet.payload >= bytes_;
  next_ += packet.payload;
  furthest_ = std::max(furthest_, next_);
  last_bytes_ = packet.bytes;
  control_->on_sent(now, packet.bytes);
  rate_ = control_->rate();
  next_at_ = now + spacing(rate_);
  if (progress_at_ == 0) progress_at_ = now;
}

void GoBackNSender::set_rate() {
  if (control_->shifts_next_packet() && control_->rate() != rate_ && last_bytes_ > 0) {
    next_at_ += spacing(control_->rate()) - spacing(rate_);
    rate_ = control_->rate();
  }
}

void GoBackNSender::on_answer(Instant now, const Packet& answer, const Telemetry* telemetry) {
  if (answer.kind == PacketKind::kCnp) {
    control_->on_notification(now);
    set_rate();
    return;
  }
  const std::uint64_t before = acknowledged_;
  acknowledged_ = std::max(acknowledged_, answer.cumulative);
  if (acknowledged_ > before) {
    progress_at_ = now;
    timeouts_ = 0;
    next_ = std::max(next_, acknowledged_);
  }
  if (is_finished()) return;
  if (answer.kind == PacketKind::kNack) {
    next_ = acknowledged_;
    control_->on_loss(now);
  }
  if (answer.marked && notes_marks_) control_->on_notification(now);
  control_->on_ack({.now = now,
                    .acknowledged = answer.cumulative,
                    .next = next_,
                    .newly = static_cast<double>(acknowledged_ - before),
                    .in_flight = static_cast<double>(next_ - acknowledged_),
                    .marked = answer.marked,
                    .has_delay = !answer.again,
                    .delay = now - answer.stamp,
                    .telemetry = telemetry});
  set_rate();
}

Instant GoBackNSender::timer() const {
  if (is_finished()) return kNever;
  Instant at = control_->timer();
  if (rto_ > 0 && next_ > acknowledged_) {
    at = std::min(at, progress_at_ + (rto_ << std::min(timeouts_, kMostBackoff)));
  }
  return at;
}

void GoBackNSender::on_timer(Instant now, std::vector<Packet>&) {
  if (control_->timer() <= now) {
    control_->on_timer(now);
    set_rate();
  }
  if (rto_ == 0 || next_ <= acknowledged_) return;
  if (progress_at_ + (rto_ << std::min(timeouts_, kMostBackoff)) > now) return;
  ++timeouts_;
  progress_at_ = now;
  control_->on_timeout(now, static_cast<double>(next_ - acknowledged_));
  next_ = acknowledged_;
}

GoBackNReceiver::GoBackNReceiver(const TransportSpec& spec, const MessageView& message)
    : bytes_(message_bytes(spec, message)),
      ack_bytes_(static_cast<std::uint32_t>(spec.ack.value())),
      packets_per_ack_(spec.packets_per_ack),
      nack_interval_(spec.nack_interval.value_or(Duration(0)).count()),
      notification_interval_(has_notifications(spec) ? spec.dcqcn.notification_interval->count()
                                                     : 0) {}

void GoBackNReceiver::on_packet(Instant now, const Packet& packet, std::vector<Packet>& answers) {
  if (packet.marked && notification_interval_ > 0 && now >= notify_again_at_) {
    notify_again_at_ = now + notification_interval_;
    answers.push_back(answer_to(packet, PacketKind::kCnp, kNotificationBytes));
  }
  if (packet.sequence > expected_) {
    if (last_nack_ == expected_ && now < nack_again_at_) return;
    last_nack_ = expected_;
    nack_again_at_ = now + nack_interval_;
    answers.push_back(answer_to(packet, PacketKind::kNack, ack_bytes_));
    answers.back().cumulative = expected_;
    return;
  }
  if (packet.sequence == expected_) {
    expected_ += packet.payload;
    last_nack_ = kNever;
  }
  if (++unanswered_ < packets_per_ack_ && !packet.asks && !packet.marked) return;
  unanswered_ = 0;
  answers.push_back(answer_to(packet, PacketKind::kAck, ack_bytes_));
  answers.back().cumulative = expected_;
}

}  // namespace stepsim
