// Launches is the time line of every rank's host, which launches the rank's ops one after the other
// (Program::launches). An op starts when its streams let it and its host has launched it.
//
//   begin(i) = max(end(i-1), end of the op that frees the queue, end of an op it waited for)
//   end(i)   = begin(i) + launches(i) x HostCost::launch
//
// A run of kernels starts when it can go on without a hole. Kernel j of it is launched at begin(i)
// + L(j) x launch, where L(j) are its launches up to j. So the run starts at the largest of these
// instants less the time of the kernels before j: with holes it would end at the same instant. The
// queue (CUDA: 1,024 launches) is that of the compute stream. The first launch of an op waits for
// the end of the op that was queue_depth launches before it.
//
// A host that doesn't wait runs ahead of the chip. It is looked at again when an op ends that it
// waits for: O(log(ops)) an op. Memory is O(launches ahead) a rank. Kernels are taken to be as fast
// as without communication beside them.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/units.h"
#include "sim/chips/chip_spec.h"
#include "sim/program/op_graph.h"
#include "sim/run/ops/streams.h"

namespace stepsim {

class Launches {
 public:
  // Launches what hosts can at the start of a run. REQUIRES: OpGraph::host; the programs have
  // launches of all their ops.
  Launches(const Job& job, const Streams& streams, const ChipSpec& chip, std::uint32_t steps);

  // Returns when the next op of `stream` may start for its host, which may be past. Unset: its host
  // waits itself, and will wake the stream. REQUIRES: the streams let it start.
  std::optional<Time> launched(RankStreamId stream, Time now);

  // Returns true the first time for each op that waits for the instant that launched() has said.
  bool begins_to_wait(RankStreamId stream);

  // Returns since when the streams have let the op start that starts or runs.
  Time ready_at(RankStreamId stream) const { return queues_[stream.index()].ready_at; }
  void start(RankStreamId stream);

  // REQUIRES: called after Streams::end() of this op. Appends the streams whose wait for the host
  // is over. Returns whether the host was idle until this op ended.
  bool end(RankStreamId stream, Time now, std::vector<RankStreamId>& woken);

  // Returns the instant since which the host launches without a wait.
  Time busy_since(RankId rank) const { return hosts_[rank.index()].since; }
  // Returns the stream whose op the host waits for.
  std::optional<RankStreamId> waits_for(RankId rank) const;

 private:
  struct Call {
    std::uint32_t stream = 0;    // of the program
    std::uint32_t position = 0;  // on the stream
    std::uint64_t before = 0;    // launches of the compute stream before it in a step
    Duration cost{};
    Duration lead{};  // from begin(i) to the start of the op
    bool waits = false;
  };
  struct Calls {
    std::vector<Call> calls;
    std::uint32_t compute = 0;        // the compute stream
    std::vector<std::uint64_t> ends;  // by op of it: launches in a step up to its last one
  };
  struct Wait {
    RankStreamId stream;
    std::uint64_t ended = 0;  // ops on it, over all steps
  };
  struct Host {
    const Calls* program = nullptr;
    std::uint32_t first_stream = 0;
    std::uint32_t next = 0;  // call
    std::uint32_t step = 0;
    Time since;
    Time until;  // end of the last launch
    std::optional<Wait> wait{};
  };
  struct Queue {  // of a stream: launched ops that have not started
    std::vector<Time> starts;
    std::size_t first = 0;
    Time ready_at;
    bool ready = false;
    bool waits_for_launch = false;
    bool waits_for_instant = false;
  };

  Calls calls_of(const Program& program, const std::vector<Duration>& leads) const;
  std::optional<Wait> wait_for_queue(const Host& host, const Call& call) const;
  bool is_over(const Wait& wait) const { return streams_.ended(wait.stream) >= wait.ended; }
  void launch(Host& host, std::vector<RankStreamId>& woken);

  const Streams& streams_;
  HostCost cost_;
  std::uint32_t steps_;
  std::vector<Calls> programs_;
  std::vector<Host> hosts_;    // by rank
  std::vector<Queue> queues_;  // by stream of all ranks
};

}  // namespace stepsim
