// polish() improves an order of F, B and W by small steps: an op is taken out of a rank's list and
// put in again a little earlier or later. At first it stays there even if things get somewhat worse
// by it, less and less so until at the end nothing may (threshold accepting, Dueck and Scheuer
// 1990); the best order on the way is what comes out.
//
//   const PipelineSchedule better = polish(order, PipelineCosts{10, 12, 8, 1},
//                                          {.memory_limit = 8, .steps = 100'000, .worse = 1});
//
// Better: a shorter longest span of a rank; then less time of all ranks together between their
// first start and last end, which leads on where the worst rank has not moved yet. Each kind of op
// keeps its micro-batches in order. Random with a fixed seed. Time: 1 to 2 ns an op of the schedule
// and step.

#pragma once

#include <cstdint>

#include "schedules/pipeline/pipeline_schedule.h"
#include "schedules/pipeline/stage_costs.h"

namespace stepsim {

struct PolishLimits {
  std::int64_t memory_limit = 0;  // micro-batches x chunks in flight on a rank
  std::int64_t steps = 0;
  std::int64_t enough = 0;  // ends at this longest span
  std::int64_t worse = 0;   // by so much the longest span may get longer at first
  std::uint32_t seed = 1;
};

// REQUIRES: F, B and W only; check_order(schedule) is empty; it keeps within the memory; times
// below 2^62 / ops / ranks.
PipelineSchedule polish(PipelineSchedule schedule, const StageCosts& costs,
                        const PolishLimits& limits);

}  // namespace stepsim
