#include "sim/network/transport/hosts/selective.h"

#include <algorithm>
#include <cmath>

namespace stepsim {
namespace {

std::uint64_t packets_of(const TransportSpec& spec, const MessageView& message) {
  return static_cast<std::uint64_t>((message.bytes - 1) / spec.payload.value() + 1);
}

}  // namespace

SelectiveSender::SelectiveSender(const TransportSpec& spec, const MessageView& message,
                                 CreditKind credit, double window,
                                 std::unique_ptr<CongestionControl> control)
    : control_(std::move(control)),
      credit_kind_(credit),
      packets_(packets_of(spec, message)),
      payload_(static_cast<std::uint32_t>(spec.payload.value())),
      last_payload_(spec.pads_last_packet
                        ? payload_
                        : static_cast<std::uint32_t>(
                              message.bytes - static_cast<std::int64_t>(packets_ - 1) * payload_)),
      header_(static_cast<std::uint32_t>(spec.header.value())),
      quantum_(static_cast<std::uint64_t>(spec.pull_quantum.value())),
      window_(window),
      rto_(spec.rto.value_or(Duration(0)).count()),
      base_rtt_(message.base_rtt),
      backlog_(
          static_cast<double>((packets_ - 1) * (payload_ + header_) + last_payload_ + header_)),
      credit_(credit == CreditKind::kPackets ? std::min(std::floor(window / (payload_ + header_)),
                                                        static_cast<double>(packets_))
                                             : window) {
  const std::uint64_t several = 64;
  sent_.resize(several);
}

std::uint32_t SelectiveSender::payload_of(std::uint64_t packet) const {
  return packet + 1 == packets_ ? last_payload_ : payload_;
}

void SelectiveSender::make_room(std::uint64_t packet) {
  if (packet - first_ < sent_.size()) return;
  std::vector<Sent> larger(2 * sent_.size());
  for (std::uint64_t i = first_; i < packet; ++i) larger[i & (larger.size() - 1)] = sent(i);
  sent_.swap(larger);
}

bool SelectiveSender::has_repeats() {
  while (!lost_.empty() && (lost_.top() < first_ || sent(lost_.top()).state != State::kLost)) {
    lost_.pop();
  }
  return !lost_.empty();
}

Instant SelectiveSender::ready_at(Instant now) {
  const bool repeats = has_repeats();
  if (!repeats && next_ >= packets_) return kNever;
  if (credit_kind_ != CreditKind::kNone) return credit_ > 0 ? now : kNever;
  const double bytes = bytes_of(repeats ? lost_.top() : next_);
  return in_flight_ + bytes <= control_->window() ? now : kNever;
}

void SelectiveSender::send(Instant now, std::uint32_t waiting, Packet& packet) {
  const bool repeats = has_repeats();
  const std::uint64_t number = repeats ? lost_.top() : next_;
  packet.sequence = number;
  packet.payload = payload_of(number);
  packet.bytes = packet.payload + header_;
  packet.stamp = now;
  packet.again = repeats;
  if (repeats) {
    lost_.pop();
    lost_bytes_ -= packet.bytes;
  } else {
    make_room(number);
    sent(number) = {};
    ++next_;
    backlog_ -= packet.bytes;
  }
  Sent& record = sent(number);
  if (repeats && record.repeats < 2) ++record.repeats;
  record.at = now;
  record.state = State::kUnderWay;
  in_flight_ += packet.bytes;
  if (credit_kind_ == CreditKind::kBytes) credit_ -= packet.bytes;
  if (credit_kind_ == CreditKind::kPackets) credit_ -= 1;
  const bool is_last = credit_kind_ == CreditKind::kNone
                           ? in_flight_ + packet.bytes >= control_->window()
                           : credit_ <= 0;
  packet.asks = repeats || backlog_ <= 0 || is_last;
  if (credit_kind_ == CreditKind::kBytes) packet.credit = wanted_credit(waiting);
  if (rto_ > 0) departures_.push_back({number, now});
}

// What the sender would like to have been granted in all, in bytes.
std::uint64_t SelectiveSender::wanted_credit(std::uint32_t waiting) const {
  double wanted = std::min(backlog_ + lost_bytes_, window_) - credit_;
  if (is_speculating_ && backlog_ > 0) wanted = std::max<double>(wanted, payload_ + header_);
  if (waiting > 1) wanted /= waiting;
  wanted += static_cast<double>(granted_);
  if (wanted <= 0) return 0;
  return (static_cast<std::uint64_t>(wanted) + quantum_ - 1) / quantum_ * quantum_;
}

void SelectiveSender::lose(std::uint64_t packet) {
  sent(packet).state = State::kLost;
  in_flight_ -= bytes_of(packet);
  lost_bytes_ += bytes_of(packet);
  lost_.push(packet);
}

// The packet has come.
void SelectiveSender::settle(std::uint64_t packet) {
  Sent& record = sent(packet);
  if (record.state == State::kLost) {  // it was not lost, and is counted among those received
    in_flight_ += bytes_of(packet);
    lost_bytes_ -= bytes_of(packet);
  }
  record.state = State::kDone;
}

void SelectiveSender::take_credit(const Packet& answer) {
  if (credit_kind_ == CreditKind::kBytes && is_speculating_) credit_ = std::min(credit_, 0.0);
  is_speculating_ = false;
  if (!answer.grants || answer.credit <= granted_) return;
  credit_ += static_cast<double>(answer.credit - granted_);
  if (credit_kind_ == CreditKind::kBytes) credit_ = std::min(credit_, window_);
  granted_ = answer.credit;
}

void SelectiveSender::on_answer(Instant now, const Packet& answer, const Telemetry* telemetry) {
  take_credit(answer);
  if (answer.kind == PacketKind::kPull) return;
  const std::uint64_t number = answer.sequence;
  const bool is_known = number >= first_ && number < next_;
  if (answer.kind == PacketKind::kNack) {
    if (!is_known || sent(number).state != State::kUnderWay) return;
    control_->on_trimmed({.now = now,
                          .bytes = static_cast<double>(bytes_of(number)),
                          .in_flight = in_flight_,
                          .delay = now - sent(number).at});
    lose(number);
    forget_departures();
    return;
  }
  const double newly =
      answer.received > received_ ? static_cast<double>(answer.received - received_) : 0;
  received_ = std::max(received_, answer.received);
  in_flight_ -= newly;
  const bool has_delay = is_known && sent(number).state == State::kUnderWay &&
                         sent(number).repeats == (answer.again ? 1 : 0);
  const Instant delay = has_delay ? now - sent(number).at : 0;
  for (; first_ < std::min(answer.cumulative, next_); ++first_) settle(first_);
  for (std::uint64_t i = 0; i < 64 && answer.bitmap >> i != 0; ++i) {
    const std::uint64_t other = answer.bitmap_base + i;
    if ((answer.bitmap >> i & 1) != 0 && other >= first_ && other < next_) settle(other);
  }
  control_->on_ack({.now = now,
                    .acknowledged = answer.cumulative,
                    .next = next_,
                    .newly = newly,
                    .in_flight = in_flight_,
                    .marked = answer.marked,
                    .has_delay = has_delay,
                    .delay = delay,
                    .telemetry = telemetry});
  forget_departures();
}

void SelectiveSender::forget_departures() {
  while (!departures_.empty()) {
    const Departure& oldest = departures_.front();
    if (oldest.packet >= first_ && sent(oldest.packet).state == State::kUnderWay &&
        sent(oldest.packet).at == oldest.at) {
      return;
    }
    departures_.pop_front();
  }
}

Instant SelectiveSender::timer() const {
  if (rto_ == 0 || departures_.empty() || is_finished()) return kNever;
  return departures_.front().at + rto_;
}

void SelectiveSender::on_timer(Instant now, std::vector<Packet>& control_packets) {
  forget_departures();
  if (departures_.empty() || departures_.front().at + rto_ > now) return;
  const std::uint64_t number = departures_.front().packet;
  departures_.pop_front();
  control_->on_timeout(now, bytes_of(number));
  lose(number);
  forget_departures();
  if (credit_kind_ == CreditKind::kPackets) {
    credit_ = std::max(credit_, 1.0);  // NDP repeats it without a pull
  } else if (credit_kind_ == CreditKind::kBytes && credit_ <= 0 &&
             now - requested_at_ >= base_rtt_) {
    requested_at_ = now;
    Packet request;
    request.kind = PacketKind::kRequest;
    request.bytes = header_;
    request.stamp = now;
    request.credit = wanted_credit(1);
    control_packets.push_back(request);
  }
}

SelectiveReceiver::SelectiveReceiver(const TransportSpec& spec, const MessageView& message,
                                     PullQueue* pulls, CreditPacer* pacer)
    : packets_(packets_of(spec, message)),
      ack_bytes_(static_cast<std::uint32_t>(spec.ack.value())),
      ack_every_(static_cast<std::uint64_t>(spec.ack_every.value_or(Bytes(0)).value())),
      packets_per_ack_(spec.packets_per_ack),
      reorder_(spec.reorder.value_or(0)),
      pulls_(pulls),
      pacer_(pacer),
      number_(pulls != nullptr   ? pulls->add(message.flow)
              : pacer != nullptr ? pacer->add(message.flow)
                                 : 0) {}

void SelectiveReceiver::answer(const Packet& packet, PacketKind kind, Instant now, bool asks_pull,
                               std::vector<Packet>& answers) {
  Packet answer = answer_to(packet, kind, ack_bytes_);
  const std::uint64_t expected = set_.expected();
  answer.cumulative = expected;
  answer.received = received_;
  answer.at_last_hop = packet.at_last_hop;
  if (kind == PacketKind::kAck && set_.beyond() > 0) {
    const bool starts_here = packet.marked || packet.asks || packet.sequence < 63;
    const std::uint64_t base = starts_here ? packet.sequence : packet.sequence - 63;
    answer.bitmap_base = std::max(base, expected + 1);
    answer.bitmap = set_.bits_from(answer.bitmap_base);
  }
  if (asks_pull && pulls_ != nullptr && pulls_->request(number_, now)) {
    answer.grants = true;
    answer.credit = pulls_->granted(number_);
  }
  answers.push_back(answer);
}

void SelectiveReceiver::on_packet(Instant now, const Packet& packet, std::vector<Packet>& answers) {
  if (pacer_ != nullptr) pacer_->want(number_, packet.credit, now);
  if (packet.kind == PacketKind::kRequest) {
    if (pacer_ != nullptr) pacer_->repeat(number_, now);
    return;
  }
  const bool is_new = !set_.has(packet.sequence);
  if (packet.trimmed) {
    answer(packet, is_new ? PacketKind::kNack : PacketKind::kAck, now, true, answers);
    if (is_new && pacer_ != nullptr) pacer_->repeat(number_, now);
    return;
  }
  unanswered_ += packet.bytes;
  ++unanswered_packets_;
  bool at_once = !is_new || packet.marked || packet.asks || received_ == 0;
  if (is_new) {
    received_ += packet.bytes;
    answers_when_whole_ = answers_when_whole_ || packet.asks;
    set_.add(packet.sequence);
    highest_ = std::max(highest_, packet.sequence);
    if (reorder_ > 0) find_gaps(packet, answers);
    if (answers_when_whole_ && set_.beyond() == 0) {
      at_once = true;
      answers_when_whole_ = false;
    }
  }
  const bool is_due =
      ack_every_ > 0 ? unanswered_ >= ack_every_ : unanswered_packets_ >= packets_per_ack_;
  if (at_once || is_due) {
    answer(packet, PacketKind::kAck, now, is_new && !has_all(), answers);
    unanswered_ = 0;
    unanswered_packets_ = 0;
  } else if (pulls_ != nullptr && is_new) {
    pulls_->request(number_, now);
  }
  if (!has_all()) return;
  if (pulls_ != nullptr) pulls_->forget(number_);
  if (pacer_ != nullptr) pacer_->forget(number_);
}

// On one path a number that later ones have passed is lost. Each is named once; a repetition that
// is lost too comes back by the time-out.
void SelectiveReceiver::find_gaps(const Packet& packet, std::vector<Packet>& answers) {
  if (packet.again || highest_ < reorder_) return;
  for (std::uint64_t number = std::max(set_.expected(), named_.expected());
       number + reorder_ <= highest_; ++number) {
    if (!named_.add(number) || set_.has(number)) continue;
    answers.push_back(answer_to(packet, PacketKind::kNack, ack_bytes_));
    answers.back().sequence = number;
    answers.back().cumulative = set_.expected();
    answers.back().received = received_;
    answers.back().at_last_hop = true;
  }
}

}  // namespace stepsim
