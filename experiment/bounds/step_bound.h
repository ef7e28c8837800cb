// Bounds of a plan from the costs of its ranks: plan_bounds.h says what they mean.

#pragma once

#include <memory>
#include <vector>

#include "experiment/bounds/rank_cost.h"
#include "schedules/pipeline/pipeline_schedule.h"
#include "schedules/plan/parallel_plan.h"

namespace stepsim {

struct PlanCosts {
  const ParallelPlan& plan;
  std::vector<RankCost> ranks;
  std::shared_ptr<const PipelineSchedule> order;  // nullptr: it depends on the times of passes
};

Bytes least_memory(const PlanCosts& costs);
// Linear in the ranks.
Duration quick_bound(const PlanCosts& costs);
// Linear in the passes of all ranks.
Duration close_bound(const PlanCosts& costs);

// Returns, by rank and by position in its order, what is left of a step at least when the last
// kernel of that pass has ended. Empty where nothing is known. Linear in the passes of all ranks.
std::vector<std::vector<Duration>> times_behind(const PlanCosts& costs);

}  // namespace stepsim
