// SteppedCollective tracks the progress of one collective whose messages move one by one. Its owner
// moves the messages and reports their arrival:
//
//   SteppedCollective collective;
//   collective.open(algorithm, members, queues);
//   collective.post(member, now, progress);        // the member takes part from now on
//   for (const auto& send : progress.sends) ...    // to be sent at once
//   collective.arrived(transfer, now, progress);   // one of them is there
//   for (MemberId ended : progress.ended) ...      // these have nothing left to do
//
// A member takes part in the rounds that its own arrival and its earlier receipts allow: in each
// lane it hands over the message of a round when it has handed over that of the round before, and
// everything of the rounds before has arrived. A message to a member that has not posted waits for
// it. A member ends when its own last messages have arrived. Switches that add or copy are
// endpoints behind the members, which take part from the start.
//
// Messages of a member in a lane, or in lanes of one queue (CollectiveAlgorithm::queue()), follow
// each other without a gap: while one moves, the latency of the next one runs. A network whose
// ports queue messages gets each when it is handed over. Any other network shares links between all
// that move, so there the next message starts when the one before it has arrived, and has then
// waited for Send::waited of its latency already.
//
// Memory: O(lanes x endpoints + messages that wait). A call costs O(1), plus O(messages that
// arrived early or wait).

#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/units.h"
#include "sim/collectives/algorithm.h"
#include "sim/run/ops/transfer_owner.h"

namespace stepsim {

class SteppedCollective {
 public:
  struct Send {
    LaneId lane;
    std::uint32_t round = 0;
    MemberId from;
    CollectiveMessage message;
    Duration waited{};    // since it could have been sent
    bool begins = false;  // it waits for nothing that the member receives
  };
  struct Progress {
    std::vector<Send> sends;
    std::vector<MemberId> ended;
    void clear() {
      sends.clear();
      ended.clear();
    }
  };

  SteppedCollective() = default;  // empty, to be opened

  // Starts again with another algorithm, which must outlive the collective.
  // `queues`: ports of the network queue messages.
  void open(const CollectiveAlgorithm& algorithm, std::uint32_t members, bool queues);

  void post(MemberId member, Time now, Progress& progress);

  // REQUIRES: the message was in a Progress.
  void arrived(const CollectiveTransfer& transfer, Time now, Progress& progress);

  bool has_ended(MemberId member) const {
    return lanes_left_[member.index()] == 0 && under_way_[member.index()] == 0;
  }

 private:
  struct LaneState {             // state of an endpoint in a lane
    std::uint32_t sent = 0;      // rounds whose message was handed over or that have none
    std::uint32_t received = 0;  // rounds for which everything has arrived, or that receive nothing
    std::uint32_t arrived = 0;   // messages that arrived for round `received`
    std::uint32_t early = 0;     // messages of later rounds, held in early_
    std::uint32_t unbound = 0;   // the last round whose message waits for no receipt
    std::uint32_t under_way = 0;  // messages that were handed over and have not arrived
    std::uint32_t oldest = 0;     // round of the first of them
    bool stopped = false;         // its message waits for the receiver, or there is nothing to do
  };
  struct Waiting {  // a message behind another of its member and queue
    Time since;
    LaneId lane;
    std::uint32_t round;
    CollectiveMessage message;
    bool begins;
  };
  struct Early {  // a message of a round that is not the next one to complete
    LaneId lane;
    MemberId member;
    std::uint32_t round;
  };
  struct Blocked {  // a message whose receiver has not posted yet
    LaneId lane;
    MemberId from;
    MemberId to;
  };

  bool takes_part(MemberId member) const {
    return member.index() >= posted_.size() || posted_[member.index()] != 0;
  }
  LaneState& state_of(LaneId lane, MemberId member) {
    return lanes_[std::size_t{lane.index()} * endpoints_ + member.index()];
  }
  void go_on(LaneId lane, MemberId member, Time now, Progress& progress);
  bool go_on_in_lane(LaneId lane, MemberId member, Time now, Progress& progress);
  bool waits_at_gate(LaneId lane, std::uint32_t round, MemberId member);
  void send(LaneId lane, MemberId from, const CollectiveMessage& message, Time now,
            Progress& progress);
  bool begins_with(LaneId lane, MemberId member);
  void send_waiting(LaneId lane, MemberId from, Time now, Progress& progress);
  void note_arrival(const CollectiveTransfer& transfer);
  std::size_t queue_of(LaneId lane, MemberId from) const {
    return std::size_t{algorithm_->queue(lane.index())} * endpoints_ + from.index();
  }
  void end_if_done(MemberId member, Progress& progress);
  void receive(LaneId lane, std::uint32_t round, MemberId member);
  void complete_rounds(LaneId lane, MemberId member);

  const CollectiveAlgorithm* algorithm_ = nullptr;
  std::uint32_t endpoints_ = 0;
  std::uint32_t rounds_ = 0;
  bool gated_ = false;
  bool queues_ = false;
  bool in_turn_ = false;
  std::vector<std::uint8_t> posted_;       // by member
  std::vector<LaneState> lanes_;           // by lane and endpoint
  std::vector<std::uint32_t> lanes_left_;  // by member
  std::vector<std::uint32_t> under_way_;   // by member: its messages that have not arrived
  // Both by queue and endpoint: whether a message moves, and those behind it, which are looked up
  // and never iterated.
  std::vector<bool> busy_;
  std::unordered_map<std::size_t, std::deque<Waiting>> waiting_;
  std::vector<Early> early_;
  std::vector<Early> overtook_;  // arrived before an older message of their sender and lane
  std::vector<Blocked> blocked_;
  std::vector<Blocked> unblocked_;  // scratch
  std::vector<LaneGate> gates_;     // scratch
};

}  // namespace stepsim
