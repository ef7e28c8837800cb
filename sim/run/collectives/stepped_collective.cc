#include "sim/run/collectives/stepped_collective.h"

#include <algorithm>

namespace stepsim {

void SteppedCollective::open(const CollectiveAlgorithm& algorithm, std::uint32_t members) {
  algorithm_ = &algorithm;
  endpoints_ = algorithm.endpoints();
  rounds_ = algorithm.rounds();
  gated_ = algorithm.gated();
  posted_.assign(members, 0);
  lanes_.assign(std::size_t{endpoints_} * algorithm.lanes(), LaneState{});
  lanes_left_.assign(members, algorithm.lanes());
  early_.clear();
  blocked_.clear();
  for (std::uint32_t lane = 0; lane < algorithm.lanes(); ++lane) {
    for (std::uint32_t member = 0; member < endpoints_; ++member) {
      complete_rounds(LaneId(lane), MemberId(member));
    }
  }
}

void SteppedCollective::post(MemberId member, Progress& progress) {
  posted_[member.index()] = 1;
  const std::uint32_t lanes = algorithm_->lanes();
  for (std::uint32_t lane = 0; lane < lanes; ++lane) go_on(LaneId(lane), member, progress);
  if (blocked_.empty()) return;
  unblocked_.clear();
  std::erase_if(blocked_, [&](const Blocked& blocked) {
    if (blocked.to != member) return false;
    unblocked_.push_back(blocked);
    return true;
  });
  for (const Blocked& blocked : unblocked_) {
    state_of(blocked.lane, blocked.from).sending = false;
    go_on(blocked.lane, blocked.from, progress);
  }
}

void SteppedCollective::arrived(const CollectiveTransfer& transfer, Progress& progress) {
  LaneState& sender = state_of(transfer.lane, transfer.from);
  sender.sending = false;
  ++sender.sent;
  receive(transfer.lane, transfer.round, transfer.to);
  go_on(transfer.lane, transfer.from, progress);
  if (transfer.to != transfer.from) go_on(transfer.lane, transfer.to, progress);
}

// If lanes wait for each other, progress in one lane may let the member's other lanes continue.
void SteppedCollective::go_on(LaneId lane, MemberId member, Progress& progress) {
  if (!gated_) {
    go_on_in_lane(lane, member, progress);
    return;
  }
  auto [first, last] = algorithm_->lanes_behind(lane.index());
  bool moved = true;
  while (moved) {
    moved = false;
    for (std::uint32_t any = first; any < last; ++any) {
      if (!go_on_in_lane(LaneId(any), member, progress)) continue;
      moved = true;
      const auto [first_behind, last_behind] = algorithm_->lanes_behind(any);
      first = std::min(first, first_behind);
      last = std::max(last, last_behind);
    }
  }
}

// Sends the next message of a member in a lane if that is allowed. Ends the member when its last
// lane is done. Returns true if it skipped rounds in which the member sends nothing.
bool SteppedCollective::go_on_in_lane(LaneId lane, MemberId member, Progress& progress) {
  LaneState& state = state_of(lane, member);
  if (state.sending || !takes_part(member)) return false;
  const std::uint32_t before = state.sent;
  while (state.sent < rounds_ && state.received >= state.sent) {
    const auto message = algorithm_->message(lane.index(), state.sent, member.index());
    if (!message) {
      ++state.sent;
      continue;
    }
    if (gated_ && waits_at_gate(lane, state.sent, member)) return state.sent != before;
    state.sending = true;
    send(lane, member, *message, progress);
    return state.sent != before;
  }
  if (state.sent == rounds_ && state.received == rounds_) {
    state.sending = true;  // nothing more to do in this lane
    if (member.index() < posted_.size() && --lanes_left_[member.index()] == 0) {
      progress.ended.push_back(member);
    }
  }
  return state.sent != before;
}

bool SteppedCollective::waits_at_gate(LaneId lane, std::uint32_t round, MemberId member) {
  gates_.clear();
  algorithm_->gates(lane.index(), round, member.index(), gates_);
  return std::ranges::any_of(gates_, [&](const LaneGate& gate) {
    const LaneState& other = state_of(LaneId(gate.lane), member);
    return other.sent <= gate.round || other.received <= gate.round;
  });
}

void SteppedCollective::send(LaneId lane, MemberId from, const CollectiveMessage& message,
                             Progress& progress) {
  const MemberId to(message.to);
  if (takes_part(to)) {
    progress.sends.push_back({lane, state_of(lane, from).sent, from, message});
  } else {
    blocked_.push_back({lane, from, to});
  }
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
