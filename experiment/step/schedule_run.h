// simulate_schedule() runs a pipeline schedule alone through simulate(): a ring of ranks whose
// links take the send time and are never full, eager sends, ops of given times. Lists run strictly
// in order, so the result equals replay(), computed by other code. With messages in batches it
// equals replay_posted().
//
//   const ScheduleRun run = simulate_schedule(schedule, {.forward = 10, ...});   // picoseconds
//   run.replayed.bubble();
//   write_run_trace(run.graph, run.cluster, run.result, TraceDetail::kKernel, {}, sink);
//
// The cost is that of simulate(): about 1 us and 0.3 KB per op, messages included. replay() takes a
// twentieth of that.

#pragma once

#include <cstdint>
#include <vector>

#include "schedules/pipeline/pipeline_schedule.h"
#include "schedules/pipeline/posting.h"
#include "schedules/pipeline/replay/replay.h"
#include "schedules/pipeline/stage_costs.h"
#include "sim/hardware/cluster.h"
#include "sim/program/op_graph.h"
#include "sim/run/simulate.h"

namespace stepsim {

struct ScheduleRun {
  OpGraph graph;  // schedules/lowering/order_graph.h
  Cluster cluster;
  SimulationResult result;
  PipelineReplay replayed;  // picoseconds, as simulated
};

// Returns a ring for the ranks of order_graph(), whose links take `send` and are never full.
Cluster order_cluster(std::int32_t ranks, Duration send);

// For SimulationOptions::recorded_ranks.
std::vector<RankId> all_ranks(const OpGraph& graph);

// Returns the times of a simulation of order_graph(). REQUIRES: all ranks were recorded.
PipelineReplay replayed_of(const OpGraph& graph, const SimulationResult& result);

// Only the progress function of `options` is used; everything is recorded. Without a posting
// messages travel separately. REQUIRES: check_order(schedule) is empty; costs are picoseconds and
// positive, except that the send time may be 0; the send time is the same for all stages.
ScheduleRun simulate_schedule(const PipelineSchedule& schedule, const StageCosts& costs,
                              SimulationOptions options = {}, const Posting* posting = nullptr);

}  // namespace stepsim
