#include "sim/run/collectives/stepped_collective.h"

#include <algorithm>

namespace stepsim {

void SteppedCollective::open(const CollectiveAlgorithm& algorithm, std::uint32_t members,
                             bool queues) {
  algorithm_ = &algorithm;
  endpoints_ = algorithm.endpoints();
  rounds_ = algorithm.rounds();
  gated_ = algorithm.gated();
  in_turn_ = algorithm.in_turn();
  queues_ = queues;
  posted_.assign(members, 0);
  lanes_.assign(std::size_t{endpoints_} * algorithm.lanes(), LaneState{});
  lanes_left_.assign(members, algorithm.lanes());
  under_way_.assign(members, 0);
  busy_.assign(lanes_.size(), false);
  waiting_.clear();
  early_.clear();
  overtook_.clear();
  blocked_.clear();
  for (std::uint32_t lane = 0; lane < algorithm.lanes(); ++lane) {
    for (std::uint32_t member = 0; member < endpoints_; ++member) {
      complete_rounds(LaneId(lane), MemberId(member));
      LaneState& state = state_of(LaneId(lane), MemberId(member));
      state.unbound = state.received;
    }
  }
}

void SteppedCollective::post(MemberId member, Time now, Progress& progress) {
  posted_[member.index()] = 1;
  const std::uint32_t lanes = algorithm_->lanes();
  for (std::uint32_t lane = 0; lane < lanes; ++lane) go_on(LaneId(lane), member, now, progress);
  if (blocked_.empty()) return;
  unblocked_.clear();
  std::erase_if(blocked_, [&](const Blocked& blocked) {
    if (blocked.to != member) return false;
    unblocked_.push_back(blocked);
    return true;
  });
  for (const Blocked& blocked : unblocked_) {
    state_of(blocked.lane, blocked.from).stopped = false;
    go_on(blocked.lane, blocked.from, now, progress);
  }
}

void SteppedCollective::arrived(const CollectiveTransfer& transfer, Time now, Progress& progress) {
  send_waiting(transfer.lane, transfer.from, now, progress);
  note_arrival(transfer);
  receive(transfer.lane, transfer.round, transfer.to);
  if (gated_ || in_turn_) go_on(transfer.lane, transfer.from, now, progress);
  if (!(gated_ || in_turn_) || transfer.to != transfer.from)
    go_on(transfer.lane, transfer.to, now, progress);
  if (transfer.from.index() >= posted_.size()) return;
  --under_way_[transfer.from.index()];
  end_if_done(transfer.from, progress);
}

// If lanes wait for each other, progress in one lane may let the member's other lanes continue.
void SteppedCollective::go_on(LaneId lane, MemberId member, Time now, Progress& progress) {
  if (!gated_) {
    go_on_in_lane(lane, member, now, progress);
    return;
  }
  auto [first, last] = algorithm_->lanes_behind(lane.index());
  bool moved = true;
  while (moved) {
    moved = false;
    for (std::uint32_t any = first; any < last; ++any) {
      if (!go_on_in_lane(LaneId(any), member, now, progress)) continue;
      moved = true;
      const auto [first_behind, last_behind] = algorithm_->lanes_behind(any);
      first = std::min(first, first_behind);
      last = std::max(last, last_behind);
    }
  }
}

// Hands over the messages of a member in a lane that may leave. Ends the member when its last lane
// is done. Returns true if it passed rounds.
bool SteppedCollective::go_on_in_lane(LaneId lane, MemberId member, Time now, Progress& progress) {
  LaneState& state = state_of(lane, member);
  if (state.stopped || !takes_part(member)) return false;
  const std::uint32_t before = state.sent;
  while (state.sent < rounds_ && state.received >= state.sent) {
    const auto message = algorithm_->message(lane.index(), state.sent, member.index());
    if (message) {
      if (in_turn_ && state.under_way > 0) return state.sent != before;
      if (gated_ && waits_at_gate(lane, state.sent, member)) return state.sent != before;
      if (!takes_part(MemberId(message->to))) {
        state.stopped = true;
        blocked_.push_back({lane, member, MemberId(message->to)});
        return state.sent != before;
      }
      send(lane, member, *message, now, progress);
    }
    ++state.sent;
  }
  if (state.sent == rounds_ && state.received == rounds_) {
    state.stopped = true;
    if (member.index() < posted_.size()) {
      --lanes_left_[member.index()];
      end_if_done(member, progress);
    }
  }
  return state.sent != before;
}

void SteppedCollective::end_if_done(MemberId member, Progress& progress) {
  if (has_ended(member)) progress.ended.push_back(member);
}

bool SteppedCollective::waits_at_gate(LaneId lane, std::uint32_t round, MemberId member) {
  gates_.clear();
  algorithm_->gates(lane.index(), round, member.index(), gates_);
  return std::ranges::any_of(gates_, [&](const LaneGate& gate) {
    const LaneState& other = state_of(LaneId(gate.lane), member);
    if (other.sent <= gate.round || other.received <= gate.round) return true;
    return other.under_way > 0 && other.oldest <= gate.round;
  });
}

void SteppedCollective::send(LaneId lane, MemberId from, const CollectiveMessage& message, Time now,
                             Progress& progress) {
  if (from.index() < posted_.size()) ++under_way_[from.index()];
  LaneState& state = state_of(lane, from);
  if (state.under_way++ == 0) state.oldest = state.sent;
  const std::size_t queue = queue_of(lane, from);
  const bool begins = begins_with(lane, from);
  if (busy_[queue]) {
    waiting_[queue].push_back({now, lane, state.sent, message, begins});
    return;
  }
  busy_[queue] = !queues_;
  progress.sends.push_back({lane, state.sent, from, message, Duration(), begins});
}

// By the algorithm alone: what has arrived by now may depend on the order of one instant.
bool SteppedCollective::begins_with(LaneId lane, MemberId member) {
  const LaneState& state = state_of(lane, member);
  if (state.sent > state.unbound) return false;
  if (!gated_) return true;
  gates_.clear();
  algorithm_->gates(lane.index(), state.sent, member.index(), gates_);
  return gates_.empty();
}

// Sends what has waited for the member's message that has arrived, if there is anything.
void SteppedCollective::send_waiting(LaneId lane, MemberId from, Time now, Progress& progress) {
  if (queues_) return;
  const std::size_t queue = queue_of(lane, from);
  const auto place = waiting_.find(queue);
  if (place == waiting_.end()) {
    busy_[queue] = false;
    return;
  }
  const Waiting& next = place->second.front();
  progress.sends.push_back(
      {next.lane, next.round, from, next.message, now - next.since, next.begins});
  place->second.pop_front();
  if (place->second.empty()) waiting_.erase(place);
}

void SteppedCollective::note_arrival(const CollectiveTransfer& transfer) {
  LaneState& sender = state_of(transfer.lane, transfer.from);
  const auto is_of_sender = [&](const Early& early) {
    return early.lane == transfer.lane && early.member == transfer.from;
  };
  if (--sender.under_way == 0) {
    if (!overtook_.empty()) std::erase_if(overtook_, is_of_sender);
    return;
  }
  if (sender.oldest != transfer.round) {
    overtook_.push_back({transfer.lane, transfer.from, transfer.round});
    return;
  }
  const auto has_arrived = [&](std::uint32_t round) {
    return std::erase_if(overtook_, [&](const Early& early) {
             return is_of_sender(early) && early.round == round;
           }) > 0;
  };
  do {
    ++sender.oldest;
  } while (!algorithm_->message(transfer.lane.index(), sender.oldest, transfer.from.index()) ||
           has_arrived(sender.oldest));
}

void SteppedCollective::receive(LaneId lane, std::uint32_t round, MemberId member) {
  LaneState& state = state_of(lane, member);
  if (round != state.received) {
    early_.push_back({lane, member, round});
    ++state.early;
    return;
  }
  ++state.arrived;
  complete_rounds(lane, member);
}

// Passes the rounds for which everything has arrived, up to one that still waits.
void SteppedCollective::complete_rounds(LaneId lane, MemberId member) {
  LaneState& state = state_of(lane, member);
  while (state.received < rounds_) {
    if (state.arrived < algorithm_->receives(lane.index(), state.received, member.index())) return;
    ++state.received;
    state.arrived = 0;
    if (state.early == 0) continue;
    const std::size_t found = std::erase_if(early_, [&](const Early& early) {
      return early.lane == lane && early.member == member && early.round == state.received;
    });
    state.arrived = static_cast<std::uint32_t>(found);
    state.early -= state.arrived;
  }
}

}  // namespace stepsim
