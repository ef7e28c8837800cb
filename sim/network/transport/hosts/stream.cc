#include "sim/network/transport/hosts/stream.h"

#include <algorithm>
#include <cmath>

namespace stepsim {
namespace {

constexpr std::uint32_t kRepeatedAnswers = 3;
constexpr Instant kFirstRto = 1'000'000'000;  // 1 ms

std::uint64_t stream_bytes(const TransportSpec& spec, const MessageView& message) {
  if (!spec.pads_last_packet) return static_cast<std::uint64_t>(message.bytes);
  const std::int64_t payload = spec.payload.value();
  return static_cast<std::uint64_t>(((message.bytes - 1) / payload + 1) * payload);
}

}  // namespace

StreamSender::StreamSender(const TransportSpec& spec, const MessageView& message,
                           std::unique_ptr<CongestionControl> control, const Swift* swift)
    : control_(std::move(control)),
      swift_(swift),
      bytes_(stream_bytes(spec, message)),
      payload_(static_cast<std::uint64_t>(spec.payload.value())),
      header_(static_cast<std::uint32_t>(spec.header.value())),
      host_queue_(spec.host_queue),
      least_rto_(spec.rto.value_or(Duration(0)).count()),
      handshakes_left_(spec.handshakes),
      rto_(std::max(least_rto_, kFirstRto)) {}

std::uint64_t StreamSender::payload_at(std::uint64_t sequence) const {
  return std::min(payload_, bytes_ - sequence);
}

// Moves what the window allows into the host's queue.
void StreamSender::fill(Instant now) {
  const double window = control_->window() + inflation_;
  while (next_ < bytes_ && (host_queue_ == 0 || waiting_count_ < host_queue_)) {
    const std::uint64_t begin = next_;
    const std::uint64_t end = begin + payload_at(begin);
    const bool paces = swift_ != nullptr && swift_->pace() > 0;
    if (paces) {
      if (next_ > acknowledged_ && now < last_sent_ + swift_->pace()) return;
      if (waiting_count_ > 0) return;
    } else if (static_cast<double>(end - acknowledged_) > window) {
      return;
    }
    next_ = end;
    if (received_.has(begin / payload_)) continue;
    waiting_.push_back({begin, now});
    ++waiting_count_;
    last_sent_ = now;
  }
}

Instant StreamSender::ready_at(Instant now) {
  if (handshakes_left_ > 0) return waits_for_handshake_ ? kNever : now;
  if (waiting_count_ == 0) fill(now);
  if (waiting_count_ > 0) return now;
  if (next_ < bytes_ && swift_ != nullptr && swift_->pace() > 0) {
    return std::max(now, last_sent_ + swift_->pace());
  }
  return kNever;
}

void StreamSender::send(Instant now, std::uint32_t, Packet& packet) {
  packet.stamp = now;
  packet.asks = true;
  if (handshakes_left_ > 0) {
    waits_for_handshake_ = true;
    rto_from_ = now;
    packet.kind = PacketKind::kRequest;
    packet.bytes = header_;
    return;
  }
  const Segment segment = waiting_.front();
  waiting_.pop_front();
  --waiting_count_;
  packet.sequence = segment.sequence;
  packet.payload = static_cast<std::uint32_t>(payload_at(segment.sequence));
  packet.bytes = packet.payload + header_;
  packet.stamp = segment.stamp;
  packet.again = segment.sequence < furthest_;
  packet.asks = segment.sequence + packet.payload >= bytes_;
  furthest_ = std::max(furthest_, segment.sequence + packet.payload);
  if (rto_from_ == kNever) rto_from_ = now;
  fill(now);
}

void StreamSender::see_delay(Instant delay) {
  const auto sample = static_cast<double>(delay);
  if (rtt_ > 0) {
    deviation_ += (std::abs(sample - rtt_) - deviation_) / 4;
    rtt_ += (sample - rtt_) / 8;
  } else {
    rtt_ = sample;
    deviation_ = sample / 2;
  }
  rto_ = std::max(least_rto_, static_cast<Instant>(rtt_ + 4 * deviation_));
}

void StreamSender::see_received(const Packet& answer) {
  for (std::uint64_t segment = received_.expected(); segment * payload_ < answer.cumulative;
       ++segment) {
    received_.add(segment);
  }
  for (std::uint64_t i = 0; i < 64 && answer.bitmap >> i != 0; ++i) {
    if ((answer.bitmap >> i & 1) == 0) continue;
    received_.add(answer.bitmap_base + i);
    furthest_received_ = std::max(furthest_received_, answer.bitmap_base + i);
  }
}

// Sends the first segment again that is missing below others and was not sent again in this
// recovery. Returns false if there is none.
bool StreamSender::repeat_missing(Instant now) {
  std::uint64_t segment = std::max(repaired_, acknowledged_ / payload_);
  while (segment + kRepeatedAnswers <= furthest_received_ && received_.has(segment)) ++segment;
  const bool is_first = segment * payload_ == acknowledged_ && segment >= repaired_;
  if (segment + kRepeatedAnswers > furthest_received_ && !is_first) return false;
  repaired_ = segment + 1;
  waiting_.push_back({segment * payload_, now});
  ++waiting_count_;
  return true;
}

void StreamSender::on_answer(Instant now, const Packet& answer, const Telemetry* telemetry) {
  if (answer.grants) {  // a handshake
    waits_for_handshake_ = false;
    rto_from_ = kNever;
    if (handshakes_left_ > 0) --handshakes_left_;
    return;
  }
  if (answer.cumulative < acknowledged_) return;
  const std::uint64_t newly = answer.cumulative - acknowledged_;
  if (!answer.again) see_delay(now - answer.stamp);
  see_received(answer);
  const bool was_recovering = is_recovering_;
  if (newly > 0) {
    acknowledged_ = answer.cumulative;
    next_ = std::max(next_, acknowledged_);
    repeated_answers_ = 0;
    rto_from_ = acknowledged_ >= furthest_ ? kNever : now;
  }
  if (!was_recovering || swift_ != nullptr) {
    control_->on_ack({.now = now,
                      .acknowledged = acknowledged_,
                      .next = next_,
                      .newly = static_cast<double>(newly),
                      .in_flight = static_cast<double>(next_ - acknowledged_),
                      .marked = answer.marked,
                      .has_delay = !answer.again,
                      .delay = now - answer.stamp,
                      .telemetry = telemetry});
  }
  if (newly > 0 && was_recovering) {
    if (acknowledged_ >= recover_) {
      is_recovering_ = false;
      inflation_ = 0;
    } else {
      inflation_ =
          std::max(0.0, inflation_ - static_cast<double>(newly)) + static_cast<double>(payload_);
      repeat_missing(now);
    }
  } else if (newly == 0 && next_ > acknowledged_) {
    if (was_recovering) {
      // Every second answer lets a segment go: half the rate (RFC 6937).
      if (++recovery_answers_ % 2 == 0 && !repeat_missing(now)) {
        inflation_ = std::min(inflation_ + static_cast<double>(payload_), control_->window());
      }
    } else if (++repeated_answers_ == kRepeatedAnswers && acknowledged_ >= recover_) {
      is_recovering_ = true;
      recover_ = next_;
      control_->on_loss(now);
      repaired_ = 0;
      repeat_missing(now);
    }
  }
  fill(now);
}

Instant StreamSender::timer() const {
  if (least_rto_ == 0 || rto_from_ == kNever || is_finished()) return kNever;
  return rto_from_ + rto_;
}

void StreamSender::on_timer(Instant now, std::vector<Packet>&) {
  if (timer() > now) return;
  if (handshakes_left_ > 0) {
    waits_for_handshake_ = false;
    rto_from_ = kNever;
    return;
  }
  control_->on_timeout(now, static_cast<double>(next_ - acknowledged_));
  is_recovering_ = false;
  inflation_ = 0;
  recover_ = furthest_;
  repeated_answers_ = 0;
  while (waiting_count_ > 0) {
    waiting_.pop_front();
    --waiting_count_;
  }
  next_ = acknowledged_;
  rto_ *= 2;
  rto_from_ = now;
  fill(now);
}

StreamReceiver::StreamReceiver(const TransportSpec& spec, const MessageView& message)
    : bytes_(stream_bytes(spec, message)),
      payload_(static_cast<std::uint64_t>(spec.payload.value())),
      ack_bytes_(static_cast<std::uint32_t>(spec.ack.value())),
      packets_per_ack_(spec.packets_per_ack),
      delay_(spec.delayed_ack.value_or(Duration(0)).count()) {}

std::uint64_t StreamReceiver::cumulative() const {
  return std::min(bytes_, set_.expected() * payload_);
}

void StreamReceiver::answer(const Packet& packet, std::vector<Packet>& answers) {
  answers.push_back(answer_to(packet, PacketKind::kAck, ack_bytes_));
  answers.back().cumulative = cumulative();
  answers.back().bitmap_base = set_.expected() + 1;
  answers.back().bitmap = set_.bits_from(set_.expected() + 1);
  unanswered_ = 0;
  late_at_ = kNever;
}

void StreamReceiver::on_packet(Instant now, const Packet& packet, std::vector<Packet>& answers) {
  if (packet.kind == PacketKind::kRequest) {
    answers.push_back(answer_to(packet, PacketKind::kAck, ack_bytes_));
    answers.back().grants = true;
    return;
  }
  if (packet.marked != was_marked_ && unanswered_ > 0) answer(last_, answers);
  was_marked_ = packet.marked;
  const std::uint64_t before = set_.expected();
  set_.add(packet.sequence / payload_);
  const bool in_order = set_.expected() > before && set_.beyond() == 0;
  last_ = packet;
  ++unanswered_;
  if (!in_order || unanswered_ >= packets_per_ack_ || delay_ == 0 || has_all()) {
    answer(packet, answers);
  } else if (late_at_ == kNever) {
    late_at_ = now + delay_;
  }
}

void StreamReceiver::on_timer(Instant, std::vector<Packet>& answers) {
  late_at_ = kNever;
  if (unanswered_ > 0) answer(last_, answers);
}

}  // namespace stepsim
