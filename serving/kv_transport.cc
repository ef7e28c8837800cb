#include "serving/kv_transport.h"

namespace stepsim {

void TimedKvTransport::start(Time now, const KvTransfer& transfer) {
  const Duration length = rates_.base + transfer.tokens * rates_.token;
  under_way_.push({now + length, started_++, transfer});
}

std::optional<Time> TimedKvTransport::next_event() const {
  if (under_way_.empty()) return std::nullopt;
  return under_way_.top().end;
}

void TimedKvTransport::advance(Time now, std::vector<KvTransfer>& arrived) {
  while (!under_way_.empty() && under_way_.top().end <= now) {
    arrived.push_back(under_way_.top().transfer);
    under_way_.pop();
  }
}

}  // namespace stepsim
