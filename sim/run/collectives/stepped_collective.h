// SteppedCollective tracks the progress of one collective whose messages move one by one. Its owner
// moves the messages and reports their arrival:
//
//   SteppedCollective collective(algorithm, members);
//   collective.post(member, progress);             // the member takes part from now on
//   for (const auto& send : progress.sends) ...    // to be sent at once
//   collective.arrived(transfer, progress);        // one of them is there
//   for (MemberId ended : progress.ended) ...      // these have nothing left to do
//
// A member takes part in the rounds that its own arrival and its earlier receipts allow: in each
// lane it sends the message of a round when that of the round before has left and all of the
// rounds before have arrived. A message to a member that has not posted waits for it. A member ends
// when its own last messages have left and arrived. Switches that add or copy are endpoints behind
// the members, which take part from the start.
//
// Memory: O(lanes x endpoints). A call costs O(1), plus O(messages that arrived early or wait).

#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/ids.h"
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
  void open(const CollectiveAlgorithm& algorithm, std::uint32_t members);

  void post(MemberId member, Progress& progress);

  // REQUIRES: the message was in a Progress.
  void arrived(const CollectiveTransfer& transfer, Progress& progress);

  bool has_ended(MemberId member) const { return lanes_left_[member.index()] == 0; }

 private:
  struct LaneState {             // state of an endpoint in a lane
    std::uint32_t sent = 0;      // rounds whose message has left or that have none
    std::uint32_t received = 0;  // rounds for which everything has arrived, or that receive nothing
    std::uint32_t arrived = 0;   // messages that arrived for round `received`
    std::uint32_t early = 0;     // messages of later rounds, held in early_
    bool sending = false;        // a message, or nothing more to do
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
  void go_on(LaneId lane, MemberId member, Progress& progress);
  bool go_on_in_lane(LaneId lane, MemberId member, Progress& progress);
  bool waits_at_gate(LaneId lane, std::uint32_t round, MemberId member);
  void send(LaneId lane, MemberId from, const CollectiveMessage& message, Progress& progress);
  void receive(LaneId lane, std::uint32_t round, MemberId member);
  void complete_rounds(LaneId lane, MemberId member);

  const CollectiveAlgorithm* algorithm_ = nullptr;
  std::uint32_t endpoints_ = 0;
  std::uint32_t rounds_ = 0;
  bool gated_ = false;
  std::vector<std::uint8_t> posted_;       // by member
  std::vector<LaneState> lanes_;           // by lane and endpoint
  std::vector<std::uint32_t> lanes_left_;  // by member
  std::vector<Early> early_;
  std::vector<Blocked> blocked_;
  std::vector<Blocked> unblocked_;  // scratch
  std::vector<LaneGate> gates_;     // scratch
};

}  // namespace stepsim
