// greedy_schedule() makes an order of F, B and W by playing the pipeline forward in time: a rank
// that is free takes the best op whose input is there, and a W where it would wait. It makes good
// orders for any times, memory and placement in a moment. A few numbers (GreedyPolicy) decide which
// order comes out; optimal_schedule() tries many of them.
//
//   const PipelineSchedule order = greedy_schedule(
//       {.stages = 8, .microbatches = 32}, {10, 12, 8, 1}, {.limits = std::vector<std::int64_t>(8,
//       6)});
//
// Among the ops that are ready at a rank's turn, B goes before F (or F before B), then the deeper
// chunk, then the older micro-batch. F needs room in memory, and W is run to make room. The last
// slots are kept for deeper chunks, so that the oldest micro-batch can always go on and nothing
// gets stuck. A waiting rank runs W if it ends at most `patience` after the next message arrives.
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
  std::int64_t patience = 0;           // of a message that is there while a W still runs
  bool forward_first = false;
};

// REQUIRES: placement kLoop or kV; costs positive, the send time not negative; a limit a rank, each
// at least the number of chunks.
PipelineSchedule greedy_schedule(const ScheduleShape& shape, const StageCosts& costs,
                                 const GreedyPolicy& policy);

// The policies that are worth trying first, within so many in flight on each rank: limits as 1F1B
// has them (P - r on rank r) times a factor, or all the memory everywhere.
std::vector<GreedyPolicy> greedy_policies(const ScheduleShape& shape, const StageCosts& costs,
                                          std::int64_t memory_limit);

}  // namespace stepsim
