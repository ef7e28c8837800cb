// CollectiveRuns runs collectives: the n-th op of each member on a communicator group is one
// collective. The members must agree in operation, bytes, type and algorithm.
//
//   pipelined  one transfer over all the edges of the algorithm, from the moment the last member
//              has posted: a pipeline runs at the speed of its slowest edge. Phases (levels of a
//              hierarchy) are fully overlapped. Also stepped where switches add and copy while the
//              data come (not as packets). collective_plan.h sums it up.
//   stepped    every message of every round is a transfer: stepped_collective.h
//
// The plan of an algorithm in a group is worked out once per (work, group). Memory of a run is
// O(members in flight). In a folded job a group has one member for each class of its members, and
// its collectives stand for those of all groups like it.

#pragma once

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/ids.h"
#include "sim/program/op_graph.h"
#include "sim/run/collectives/collective_plan.h"
#include "sim/run/collectives/stepped_collective.h"
#include "sim/run/ops/communication_reports.h"
#include "sim/run/ops/last_cause.h"
#include "sim/run/ops/streams.h"
#include "sim/run/ops/transfer_owner.h"
#include "sim/run/ops/transport.h"

namespace stepsim {

class CollectiveRuns {
 public:
  // `plans`: of the graph of the job.
  CollectiveRuns(const Job& job, const Streams& streams, const LastCause& last_cause,
                 Transport& transport, CollectivePlans& plans);

  // Posts the collective that `stream` starts. Throws MismatchError.
  void post(RankStreamId stream, Time now, CommunicationReports& reports);

  // Returns the share of its rank's chip that the collective of `stream`, which starts, runs or
  // ends, takes.
  ChipShare taken(RankStreamId stream);

  void arrived(const CollectiveTransfer& transfer, Time now, CommunicationReports& reports);

  Bytes sent(Axis axis) const { return sent_[static_cast<std::size_t>(axis)]; }
  // Returns the least bytes that the collectives so far had to move. Algorithms that forward send
  // more; switches that add send less. An all-to-all with a matrix counts the bytes that it sent.
  Bytes asked(Axis axis) const { return asked_[static_cast<std::size_t>(axis)]; }

  // Books the bytes of all collectives that were one transfer. Called once, after the run.
  void book_transfers();

  struct Past {
    std::vector<std::vector<std::uint64_t>> transfers;  // by work and group
    std::array<Bytes, kMostAxes> sent{};
    std::array<Bytes, kMostAxes> asked{};
  };
  Past past() const;
  // The collectives since `past` run `times` more (repeats.h). Their bytes are booked by
  // book_repeats(), as the network does not carry them. REQUIRES: each was one transfer.
  void repeat(std::uint64_t times, const Past& past);
  void book_repeats();

  // For the deadlock report: describes what the posted collective of `stream` still waits for, and
  // adds ranks that have not posted to `ranks`.
  std::string waits_for(RankStreamId stream, std::vector<RankId>& ranks) const;

 private:
  // How a work runs in a group, and how often it has. A transfer's bytes are booked at the end.
  struct Plan {
    CollectivePlan of_group;
    TransferLinks links;  // if it is one transfer
    std::uint32_t members = 1;
    std::uint32_t count = 1;  // groups that the simulated one stands for
    std::uint64_t transfers = 0;
    std::uint64_t repeated = 0;  // of those that are not simulated
  };
  struct Run {
    Plan* plan = nullptr;
    CollectiveWorkId work;
    GroupId group;
    std::uint32_t arrived = 0;
    std::uint32_t done = 0;
    RankStreamId first;  // of the member that posted first
    RankStreamId last;   // of the member that posted last; of equals LastCause's first
    Time last_at;
    std::vector<std::optional<RankStreamId>> streams;  // by member, once it has posted
    SteppedCollective stepped;                         // unless plan->at_once
  };

  struct GroupState {
    std::uint32_t members = 1;          // ranks of the graph; `posted` has the simulated ones
    std::vector<std::uint32_t> posted;  // collectives that each member has posted
    std::deque<std::optional<CollectiveRunId>> open;  // from number `first_open` on; unset: ended
    std::uint32_t first_open = 0;
  };

  const CollectiveWork& work_of(CollectiveWorkId work) const {
    return graph_.collective_works[work.index()];
  }
  const Communicator& communicator_of(CollectiveWorkId work) const {
    return job_.communicators()[work_of(work).communicator.index()];
  }
  GroupState& state_of(CollectiveWorkId work, GroupId group) {
    return groups_[work_of(work).communicator.index()][group.index()];
  }
  CollectiveWorkId posted_work(RankStreamId stream) const {
    return CollectiveWorkId(streams_.op(stream).work);
  }
  Plan& plan_of(CollectiveWorkId work, GroupId group);
  std::uint32_t stage_of(RankStreamId stream) const {
    return job_.ranks()[streams_.rank_of(stream).index()].pp;
  }

  void book(const Plan& plan, std::uint64_t transfers);
  CollectiveRunId run_of(CollectiveWorkId work, GroupId group, std::uint32_t number,
                         RankStreamId stream);
  CollectiveRunId open_run(CollectiveWorkId work, GroupId group, RankStreamId stream);
  void check_agreement(const Run& run, RankStreamId stream) const;
  void all_posted(CollectiveRunId id, Time now, CommunicationReports& reports);
  void start_at_once(CollectiveRunId id, Time now);
  void carry_on(CollectiveRunId id, Time now, CommunicationReports& reports);
  void send(CollectiveRunId id, const SteppedCollective::Send& send, Time now);
  void end_member(CollectiveRunId id, MemberId member, Time now, CommunicationReports& reports);
  void retire(CollectiveRunId id);
  std::string describe(RankStreamId stream, CollectiveWorkId work) const;

  const Job& job_;
  const OpGraph& graph_;
  const Streams& streams_;
  const LastCause& last_cause_;
  Transport& transport_;
  CollectivePlans& group_plans_;
  std::vector<std::vector<std::unique_ptr<Plan>>> plans_;  // by work and group
  std::vector<std::vector<GroupState>> groups_;            // by communicator and group
  std::vector<Run> runs_;
  std::vector<CollectiveRunId> free_;
  std::array<Bytes, kMostAxes> sent_{};
  std::array<Bytes, kMostAxes> asked_{};
  SteppedCollective::Progress progress_;  // scratch
};

}  // namespace stepsim
