// Bounds of a plan from the costs of its ranks: plan_bounds.h says what they mean. `order` is
// nullptr where the order of passes depends on their times.

#pragma once

#include <vector>

#include "experiment/bounds/rank_cost.h"
#include "schedules/pipeline/pipeline_schedule.h"
#include "schedules/plan/parallel_plan.h"

namespace stepsim {

Bytes least_memory(const ParallelPlan& plan, const std::vector<RankCost>& ranks,
                   const PipelineSchedule* order);
// Linear in the ranks.
Duration quick_bound(const ParallelPlan& plan, const std::vector<RankCost>& ranks,
                     const PipelineSchedule* order);
// Linear in the passes of all ranks.
Duration close_bound(const ParallelPlan& plan, const std::vector<RankCost>& ranks,
                     const PipelineSchedule* order);

// Returns, by rank and by position in its order, what is left of a step at least when the last
// kernel of that pass has ended. Empty where nothing is known. Linear in the passes of all ranks.
std::vector<std::vector<Duration>> times_behind(const ParallelPlan& plan,
                                                const std::vector<RankCost>& ranks,
                                                const PipelineSchedule* order);

}  // namespace stepsim
