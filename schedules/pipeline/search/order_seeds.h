// Orders of F, B and W from which optimal_schedule() starts.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedules/pipeline/op_makers.h"
#include "schedules/pipeline/search/optimal_schedule.h"
#include "schedules/pipeline/stage_costs.h"

namespace stepsim {

// Returns an order that fits into any memory: one micro-batch through all stages and back, then the
// next.
PipelineSchedule one_at_a_time(const ScheduleShape& shape);

struct PublishedOrder {
  PipelineSchedule schedule{};
  std::string origin{};  // the schedule's name
};

// Returns every published schedule with these numbers of stages, micro-batches and chunks, with
// split backwards. The planners (ZB auto, ZB-V) run with their own memory limit and with
// `memory_limit`. Some orders need more memory than that.
std::vector<PublishedOrder> published_orders(const OptimalRequest& request, const StageCosts& costs,
                                             std::int64_t memory_limit);

}  // namespace stepsim
