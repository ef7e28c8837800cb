// polish() improves an order of F, B and W by small steps: it takes an op out of a rank's list and
// inserts it a little earlier or later. At first it accepts moves that make the order somewhat
// worse. It accepts less and less, and at the end nothing worse (threshold accepting, Dueck and
// Scheuer 1990). It returns the best order on the way.
//
//   const PipelineSchedule better = polish(order, PipelineCosts{10, 12, 8, 1},
//                                          {.memory_limit = 8, .steps = 100'000, .worse = 1});
//
// An order is better if the longest span of a rank is shorter. On a tie, it is better if the spans
// of all ranks add up to less, which gives direction while the worst rank has not moved yet. Each
// kind of op keeps its micro-batches in order. The moves are random with a fixed seed. Time: 1 to 2
// ns per op of the schedule and step.

#pragma once

#include <cstdint>

#include "schedules/pipeline/pipeline_schedule.h"
#include "schedules/pipeline/stage_costs.h"

namespace stepsim {

struct PolishLimits {
  std::int64_t memory_limit = 0;  // most micro-batches x chunks in flight on a rank
  std::int64_t steps = 0;
  std::int64_t enough = 0;  // stops at this longest span
  std::int64_t worse = 0;   // how much longer the longest span may become at first
  std::uint32_t seed = 1;
};

// REQUIRES: F, B and W only; check_order(schedule) is empty; the schedule fits in the memory; times
// are below 2^62 / ops / ranks.
PipelineSchedule polish(PipelineSchedule schedule, const StageCosts& costs,
                        const PolishLimits& limits);

}  // namespace stepsim
