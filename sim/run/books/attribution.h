// Attribution divides the time of each rank into causes. The step is partitioned in whole
// picoseconds:
//
//   compute   the compute stream runs. Otherwise it waits for its next op, or for the end of the
//             run: follow the dependency that ended last (of equals the lowest op id), through ops
//             of this rank that themselves only waited, to an op Y. Where Y was moving data:
//   exposed   communication of Y's axis. Where Y was posted and others had not posted:
//   bubble    if the last of them to post stands on another pipeline stage, else
//   idle.     Nothing left to run: bubble with pipeline stages, else idle.
//   launch    an op, the next one or Y, could have started if the host had launched it.
//
// No part is a remainder. A gap is resolved when it ends, backwards in time, from the communication
// ops that ended in it. These are forgotten when the next compute op starts, so memory is
// O(communication ops that end in one gap).

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/ids.h"
#include "sim/program/op_graph.h"
#include "sim/run/ops/communication_reports.h"
#include "sim/run/ops/job.h"
#include "sim/run/ops/streams.h"
#include "sim/run/simulation_result.h"

namespace stepsim {

class Attribution {
 public:
  Attribution(const Job& job, const Streams& streams);

  // The compute stream of `rank` starts its next op, which ends the gap. From `ready` on the op
  // waited for its host.
  void compute_starts(RankId rank, Time ready, Time now);
  void compute_ends(RankId rank, Time now);

  RankStreamId compute_stream(RankId rank) const { return ranks_[rank.index()].compute_stream; }

  // REQUIRES: called before Streams::end() of this op. From `ready` to its start it waited for its
  // host.
  void communication_ends(const CommunicationEnd& end, Time ready, Time now);

  // Keeps the waits of a rank. REQUIRES: nothing has started.
  void record(RankId rank) { ranks_[rank.index()].recorded = true; }
  // Returns the waits of a recorded rank, over the whole run. REQUIRES: finish() has been called.
  const std::vector<TimelineWait>& waits(RankId rank) const { return ranks_[rank.index()].waits; }

  // Counts only time from `now` on.
  void begin_window(Time now);

  // Returns what is known of each simulated rank so far.
  std::vector<Breakdown> breakdowns() const;
  // The time since `past` passes `times` more, in which each stream does `ops[stream]` more
  // (repeats.h).
  void repeat(std::uint64_t times, const std::vector<Breakdown>& past,
              const std::vector<std::uint32_t>& ops);

  // Resolves the last gap of every rank and returns the breakdowns.
  std::vector<Breakdown> finish(Time end);

 private:
  struct Ended {  // a communication op
    Time ready;
    Time started;
    Time moving;
    Time ended;
    OpId op;
    std::uint32_t step;
    bool waited_for_other_stage;
    std::optional<RankStreamId> last;
  };
  struct RankState {
    Breakdown breakdown;
    Time since;  // when the compute stream started or stopped
    bool computing = false;
    RankStreamId compute_stream;
    std::vector<Ended> ended;  // ops that ended in the open gap, in order of time
    bool recorded = false;
    std::vector<TimelineWait> waits;
  };

  Duration clipped(Time from, Time to) const;
  // Adds an interval to a part of the breakdown, and to the waits if they are recorded.
  void add(RankState& state, Duration& part, const TimelineWait& wait) const;
  void walk(RankState& state, const Program& program, const Ended* op) const;
  // Returns the op that ended at `at` among those that `op` of `step` waited for, lowest id first.
  static const Ended* releaser(const RankState& state, const Program& program, OpId op,
                               std::uint32_t step, Time at);

  const Job& job_;
  const Streams& streams_;
  Time window_start_;
  std::vector<RankState> ranks_;
};

}  // namespace stepsim
