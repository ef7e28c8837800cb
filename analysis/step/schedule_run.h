// simulate_schedule() runs a pipeline schedule by itself through simulate(): a ring of ranks whose
// links take the send time and have room for everything, eager sends, ops of given times. Lists
// run strictly in order, so what comes out is what replay() computes, by other code; with messages
// in batches what replay_posted() does.
//
//   const ScheduleRun run = simulate_schedule(schedule, {.forward = 10, ...});   // picoseconds
//   run.replayed.bubble();
//   write_chrome_trace(run.graph, run.cluster, run.result, file);
//
// Costs like simulate(): about 1 us an op and 0.3 KB, messages counted; replay() takes a
// twentieth.

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

// The ranks of order_graph() on a ring whose links take `send` and have room for everything.
Cluster order_cluster(std::int32_t ranks, Duration send);

// For SimulationOptions::recorded_ranks.
std::vector<RankId> all_ranks(const OpGraph& graph);

// The times of a simulation of order_graph(). REQUIRES: all ranks were recorded.
PipelineReplay replayed_of(const OpGraph& graph, const SimulationResult& result);

// Of `options` the progress function is used; everything is recorded. Without a posting messages
// travel by themselves.
// REQUIRES: check_order(schedule) is empty; costs are picoseconds, positive but for the send, which
// is the same for all stages.
ScheduleRun simulate_schedule(const PipelineSchedule& schedule, const StageCosts& costs,
                              SimulationOptions options = {}, const Posting* posting = nullptr);

}  // namespace stepsim
