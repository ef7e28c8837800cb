#include "sim/network/flow_network.h"

#include <algorithm>
#include <cassert>

namespace stepsim {

std::unique_ptr<Network> make_flow_network(const Fabric& fabric) {
  return std::make_unique<FlowNetwork>(fabric);
}

void FlowNetwork::start(Time now, TransferId id, const Transfer& transfer) {
  const FairSharing::Slot slot = sharing_.add(id, transfer.bytes, transfer.uses);
  if (transfer.latency == Duration::zero() && !sharing_.needs_no_time(slot)) {
    sharing_.join(slot);
  } else {
    waiting_.push((now + transfer.latency).since_start.count(), slot);
  }
}

void FlowNetwork::settle(Time now) {
  sharing_.settle(now.since_start.count());
}

std::optional<Time> FlowNetwork::next_event() const {
  std::optional<std::int64_t> next = sharing_.next_finish();
  if (!waiting_.empty()) next = std::min(next.value_or(waiting_.next()), waiting_.next());
  if (!next) return std::nullopt;
  return Time{Duration(*next)};
}

void FlowNetwork::advance(Time to, std::vector<TransferId>& done) {
  assert(to == next_event());
  const std::int64_t now = to.since_start.count();
  const std::size_t first_done = done.size();
  slots_.clear();
  while (!waiting_.empty() && waiting_.next() == now) waiting_.pop(slots_);
  for (const FairSharing::Slot slot : slots_) {
    if (sharing_.needs_no_time(slot)) {
      sharing_.pass(slot);
      done.push_back(sharing_.id(slot));
      sharing_.release(slot);
    } else {
      sharing_.join(slot);
    }
  }
  const bool some_need_no_time = done.size() > first_done;
  slots_.clear();
  if (sharing_.next_finish() == now) sharing_.take_finished(now, slots_);
  for (const FairSharing::Slot slot : slots_) {
    done.push_back(sharing_.id(slot));
    sharing_.release(slot);
  }
  if (some_need_no_time) {
    std::sort(done.begin() + static_cast<std::ptrdiff_t>(first_done), done.end());
  }
  transfers_ += done.size() - first_done;
}

double FlowNetwork::carried(LinkId link, Time at) const {
  return bytes_over(fabric_, link,
                    [&](LinkId id) { return sharing_.carried(id, at.since_start.count()); });
}

NetworkStatistics FlowNetwork::statistics() const {
  return {.transfers = transfers_, .rate_updates = sharing_.rate_updates()};
}

}  // namespace stepsim
