#include "sim/network/transport/hosts/credit.h"

#include <algorithm>

namespace stepsim {
namespace {

constexpr std::uint64_t kLeastGrantTime = 1024;  // bytes: a pull without credit takes this long

Packet pull(std::uint32_t flow, std::uint32_t bytes, std::uint64_t credit) {
  Packet packet;
  packet.kind = PacketKind::kPull;
  packet.flow = flow;
  packet.bytes = bytes;
  packet.to_sender = true;
  packet.grants = true;
  packet.credit = credit;
  return packet;
}

}  // namespace

PullQueue::PullQueue(const TransportSpec& spec, double rate)
    : spacing_(static_cast<Instant>(static_cast<double>((spec.payload + spec.header).value()) *
                                    1e12 / rate / spec.pull_rate)),
      bytes_(static_cast<std::uint32_t>(spec.ack.value())) {}

std::uint32_t PullQueue::add(std::uint32_t flow) {
  messages_.push_back({.flow = flow});
  return static_cast<std::uint32_t>(messages_.size() - 1);
}

void PullQueue::skip_empty() {
  while (!queue_.empty() && messages_[queue_.front()].waiting == 0) {
    messages_[queue_.front()].is_queued = false;
    queue_.pop_front();
  }
}

bool PullQueue::request(std::uint32_t message, Instant now) {
  skip_empty();
  Message& asking = messages_[message];
  if (queue_.empty() && now - last_ >= spacing_) {
    last_ = now;
    ++asking.granted;
    return true;
  }
  if (queue_.empty()) next_at_ = last_ + spacing_;
  ++asking.waiting;
  if (!asking.is_queued) {
    asking.is_queued = true;
    queue_.push_back(message);
  }
  return false;
}

void PullQueue::on_timer(Instant now, std::vector<Packet>& pulls) {
  skip_empty();
  next_at_ = kNever;
  if (queue_.empty()) return;
  const std::uint32_t number = queue_.front();
  queue_.pop_front();
  Message& message = messages_[number];
  message.is_queued = false;
  --message.waiting;
  pulls.push_back(pull(message.flow, bytes_, ++message.granted));
  last_ = now;
  if (message.waiting > 0) {
    message.is_queued = true;
    queue_.push_back(number);
  }
  if (!queue_.empty()) next_at_ = now + spacing_;
}

CreditPacer::CreditPacer(const TransportSpec& spec, double rate, double window, bool repeats_first)
    : time_per_byte_(1e12 / rate / spec.pull_rate),
      credit_(static_cast<std::uint64_t>(spec.pull_credit.value())),
      window_(static_cast<std::uint64_t>(window)),
      packet_(static_cast<std::uint32_t>((spec.payload + spec.header).value())),
      bytes_(static_cast<std::uint32_t>(spec.ack.value())),
      repeats_first_(repeats_first),
      htsim_credit_(spec.htsim_credit) {}

std::uint32_t CreditPacer::add(std::uint32_t flow) {
  messages_.push_back({.flow = flow});
  return static_cast<std::uint32_t>(messages_.size() - 1);
}

void CreditPacer::forget(std::uint32_t message) {
  messages_[message].is_done = !htsim_credit_;
  messages_[message].flow = kNoIndex;
}

void CreditPacer::start(Instant now) {
  if (next_at_ == kNever) next_at_ = now;
}

void CreditPacer::activate(std::uint32_t message, Instant now) {
  Message& asking = messages_[message];
  if (asking.place == Place::kActive) return;
  asking.place = Place::kActive;  // an entry of the idle ones is skipped
  active_.push_back(message);
  start(now);
}

void CreditPacer::want(std::uint32_t message, std::uint64_t credit, Instant now) {
  Message& asking = messages_[message];
  if (credit <= asking.wanted) return;
  asking.wanted = credit;
  activate(message, now);
}

void CreditPacer::repeat(std::uint32_t message, Instant now) {
  if (!repeats_first_) {
    activate(message, now);
    return;
  }
  Message& asking = messages_[message];
  asking.repeats += packet_;
  if (asking.is_repeating) return;
  asking.is_repeating = true;
  repeating_.push_back(message);
  start(now);
}

void CreditPacer::list_idle(std::uint32_t message) {
  if (messages_[message].is_listed_idle && !htsim_credit_) return;
  messages_[message].is_listed_idle = true;
  idle_.push_back(message);
}

std::uint64_t CreditPacer::grant(std::uint32_t number, bool beyond_wish,
                                 std::vector<Packet>& pulls) {
  Message& message = messages_[number];
  std::uint64_t more = credit_;
  if (!beyond_wish) {
    const std::uint64_t open = std::max(message.wanted, message.granted) - message.granted;
    more = std::min(more, open);
  }
  message.granted += more;
  message.repeats -= std::min<std::uint32_t>(message.repeats, static_cast<std::uint32_t>(credit_));
  if (message.flow != kNoIndex) pulls.push_back(pull(message.flow, bytes_, message.granted));
  return more;
}

void CreditPacer::on_timer(Instant now, std::vector<Packet>& pulls) {
  next_at_ = kNever;
  std::uint64_t granted = 0;
  for (bool has_granted = false; !has_granted;) {
    has_granted = true;
    if (!repeating_.empty()) {
      const std::uint32_t number = repeating_.front();
      repeating_.pop_front();
      granted = grant(number, true, pulls);
      messages_[number].is_repeating = messages_[number].repeats > 0;
      if (messages_[number].is_repeating) repeating_.push_back(number);
    } else if (!active_.empty()) {
      const std::uint32_t number = active_.front();
      active_.pop_front();
      has_granted = !messages_[number].is_done;
      if (!has_granted) continue;
      granted = grant(number, repeats_first_, pulls);
      const bool wants_more = messages_[number].wanted > messages_[number].granted;
      messages_[number].place = wants_more ? Place::kActive : Place::kIdle;
      if (wants_more) {
        active_.push_back(number);
      } else {
        list_idle(number);
      }
    } else if (!idle_.empty()) {
      const std::uint32_t number = idle_.front();
      idle_.pop_front();
      Message& message = messages_[number];
      message.is_listed_idle = false;
      has_granted = htsim_credit_ || (message.place == Place::kIdle && !message.is_done);
      if (!has_granted) continue;
      granted = grant(number, true, pulls);
      const bool may_get_more =
          message.wanted <= message.granted && message.granted - message.wanted < window_;
      message.place = may_get_more ? Place::kIdle : Place::kNowhere;
      if (may_get_more) list_idle(number);
    } else {
      return;
    }
  }
  const std::uint64_t counted = granted == 0 ? kLeastGrantTime : granted;
  next_at_ = now + static_cast<Instant>(static_cast<double>(counted) * time_per_byte_);
}

}  // namespace stepsim
