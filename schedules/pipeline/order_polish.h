// polish() improves an order of F, B and W by small steps: an op is taken out of a rank's list and
// put in again a little earlier or later, and stays there if nothing gets worse by it.
//
//   const PolishResult better = polish(order, {10, 12, 8, 1}, {.memory_limit = 8, .steps =
//   10'000});
//
// Better: a shorter longest span of a rank; then less time of all ranks together between their
// first start and last end, which leads on where the worst rank has not moved yet; then a smaller
// makespan. Each kind of op keeps its micro-batches in order. Random with a fixed seed. Time: a
// replay a step.

#pragma once

#include <cstdint>

#include "schedules/pipeline/pipeline_schedule.h"
#include "schedules/pipeline/stage_costs.h"

namespace stepsim {

struct PolishLimits {
  std::int64_t memory_limit = 0;  // micro-batches x chunks in flight on a rank
  std::int64_t steps = 0;
  std::int64_t enough = 0;  // ends at this longest span
};

// REQUIRES: F, B and W only; check_order(schedule) is empty; it keeps within the memory.
PipelineSchedule polish(PipelineSchedule schedule, const StageCosts& costs,
                        const PolishLimits& limits);

}  // namespace stepsim
