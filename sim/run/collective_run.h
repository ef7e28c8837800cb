// CollectiveRuns carries collectives out: the n-th op of each member on a communicator group is one
// collective, and must agree in operation, bytes, type and algorithm.
//
//   pipelined  one transfer over all the edges of the algorithm, from the moment the last member
//              has posted: a pipeline runs at the speed of its slowest edge. Phases (levels of a
//              hierarchy) are fully overlapped. Also stepped where switches add and copy while the
//              data come (not as packets). collective_plan.h sums it up.
//   stepped    every message of every round is a transfer. A member takes part in the rounds that
//              its own arrival and its earlier receipts allow, and is done when its own last
//              messages have left and arrived.
//
// What an algorithm does in a group is worked out once a (work, group). Memory of a run is
// O(members in flight).

#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/program/op_graph.h"
#include "sim/run/collective_plan.h"
#include "sim/run/simulate.h"
#include "sim/run/streams.h"
#include "sim/run/transfer_owner.h"
#include "sim/run/transport.h"

namespace stepsim {

class CollectiveRuns {
 public:
  CollectiveRuns(const OpGraph& graph, const Streams& streams, Transport& transport,
                 Granularity granularity, Fidelity fidelity);

  // Posts the collective that `stream` starts. Throws MismatchError.
  void post(std::uint32_t stream, Time now, Meetings& meetings);

  // What the collective that `stream` starts, runs or ends takes of its rank's chip.
  ChipShare taken(std::uint32_t stream);

  // REQUIRES: the transfer's owner is a collective.
  void arrived(const TransferOwner& owner, Time now, Meetings& meetings);

  Bytes sent(Axis axis) const { return sent_[static_cast<std::size_t>(axis)]; }
  // What the collectives that ran had to move at least: algorithms that forward send
  // more, switches that add send less. All-to-alls by a matrix: what they sent.
  Bytes asked(Axis axis) const { return asked_[static_cast<std::size_t>(axis)]; }

  // What the posted collective of `stream` still waits for; ranks that have not posted are added
  // to `ranks`. For the deadlock report.
  std::string waits_for(std::uint32_t stream, std::vector<std::uint32_t>& ranks) const;

 private:
  struct LaneState {             // of a member, stepped
    std::uint32_t sent = 0;      // rounds whose message has left, or that have none
    std::uint32_t received = 0;  // rounds of which everything has arrived, or that have nothing
    std::uint32_t arrived = 0;   // messages of round `received`
    std::uint32_t early = 0;     // messages of later rounds: Run::early
    bool sending = false;
  };
  struct Early {  // a message of a round that is not the next one to complete
    std::uint32_t lane;
    std::uint32_t member;
    std::uint32_t round;
  };
  struct Blocked {  // a message whose receiver has not posted yet
    std::uint32_t lane;
    std::uint32_t member;
    std::uint32_t to;
  };

  struct Run {
    const CollectivePlan* plan = nullptr;
    std::uint32_t work = 0;
    std::uint32_t group = 0;
    std::uint32_t endpoints = 0;  // of the algorithm; stepped only
    bool gated = false;
    std::uint32_t arrived = 0;
    std::uint32_t done = 0;
    std::uint32_t last = 0;   // stream of the last member to post; of equals the lowest rank
    std::uint32_t first = 0;  // stream of the first one
    Time last_at;
    std::vector<std::optional<std::uint32_t>> streams;  // by member, once it has posted
    std::vector<LaneState> lanes;                       // by lane and endpoint; stepped only
    std::vector<Early> early;
    std::vector<Blocked> blocked;
    std::vector<std::uint32_t> lanes_left;  // by member
  };

  struct GroupState {
    std::vector<std::uint32_t> posted;  // collectives that each member has posted so far
    // Runs, from number `first_open` on; nothing where one has ended before those ahead of it.
    std::deque<std::optional<std::uint32_t>> open;
    std::uint32_t first_open = 0;
  };

  const CollectivePlan& plan_of(std::uint32_t work, std::uint32_t group);
  std::uint32_t open_run(std::uint32_t work, std::uint32_t group, std::uint32_t stream);
  void check_agreement(const Run& run, std::uint32_t stream) const;
  void all_posted(Run& run, std::uint32_t index, Time now, Meetings& meetings);
  void end_member(std::uint32_t index, std::uint32_t member, Time now, Meetings& meetings);
  void retire(std::uint32_t index);

  void begin_stepped(std::uint32_t index, std::uint32_t member, Time now, Meetings& meetings);
  static LaneState& lane_state(Run& run, std::uint32_t lane, std::uint32_t member);
  void go_on(std::uint32_t index, std::uint32_t lane, std::uint32_t member, Time now,
             Meetings& meetings);
  bool go_on_in_lane(std::uint32_t index, std::uint32_t lane, std::uint32_t member, Time now,
                     Meetings& meetings);
  void send(std::uint32_t index, std::uint32_t lane, std::uint32_t member,
            const CollectiveMessage& message, Time now);
  void received(std::uint32_t index, std::uint32_t lane, std::uint32_t round, std::uint32_t member);
  static void complete_rounds(Run& run, std::uint32_t lane, std::uint32_t member);
  std::string describe(std::uint32_t stream, std::uint32_t work) const;

  const OpGraph& graph_;
  const Streams& streams_;
  Transport& transport_;
  Granularity granularity_;
  Fidelity fidelity_;
  std::vector<std::vector<std::unique_ptr<CollectivePlan>>> plans_;  // by work and group
  std::vector<std::vector<GroupState>> groups_;                      // by communicator and group
  std::vector<Run> runs_;
  std::vector<std::uint32_t> free_;
  std::array<Bytes, kAxes> sent_{};
  std::array<Bytes, kAxes> asked_{};
};

}  // namespace stepsim
