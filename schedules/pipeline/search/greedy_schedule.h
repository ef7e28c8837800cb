// greedy_schedule() makes an order of F, B and W by playing the pipeline forward in time. A free
// rank takes the best op whose input is there. If it would have to wait, it takes a W. The orders
// are good for any times, memory and placement, and are made quickly. A few numbers (GreedyPolicy)
// decide which order results; optimal_schedule() tries many of them.
//
//   const PipelineSchedule order = greedy_schedule(
//       {.stages = 8, .microbatches = 32}, {10, 12, 8, 1}, {.limits = std::vector<std::int64_t>(8,
//       6)});
//
// Among the ops that are ready at a rank's turn, B goes before F (or F before B), then the deeper
// chunk, then the older micro-batch. F needs free memory, and W runs to free some. The last places
// in memory are reserved for deeper chunks, so that the oldest micro-batch can always go on and
// nothing gets stuck. A waiting rank runs W if it ends at most `patience` after the next message
// arrives.
//
// Time: ops x (chunks + log stages), 0.2 us an op.

#pragma once

#include <cstdint>
#include <vector>

#include "schedules/pipeline/op_makers.h"
#include "schedules/pipeline/pipeline_schedule.h"
#include "schedules/pipeline/stage_costs.h"

namespace stepsim {

struct GreedyPolicy {
  std::vector<std::int64_t> limits{};  // by rank: micro-batches x chunks in flight
  std::int64_t patience = 0;           // how long an arrived message may wait for a running W
  bool forward_first = false;
};

// REQUIRES: placement is kLoop or kV; costs are positive, the send time is not negative; there is
// one limit per rank, each at least the number of chunks.
PipelineSchedule greedy_schedule(const ScheduleShape& shape, const StageCosts& costs,
                                 const GreedyPolicy& policy);

// Returns the policies to try first, within `memory_limit` in flight on each rank. Their limits are
// those of 1F1B (P - r on rank r) times a factor, or all of the memory on every rank.
std::vector<GreedyPolicy> greedy_policies(const ScheduleShape& shape, const StageCosts& costs,
                                          std::int64_t memory_limit);

}  // namespace stepsim
