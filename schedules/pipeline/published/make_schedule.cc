#include "schedules/pipeline/published/make_schedule.h"

#include <cassert>

#include "schedules/pipeline/orders/interleaved.h"

namespace stepsim {

StageCosts costs_of(const ScheduleRequest& request) {
  if (request.stage_costs.empty()) return request.costs;
  return request.stage_costs;
}

std::int64_t chunks_of(const ScheduleRequest& request) {
  return request.chunks ? *request.chunks : published(request.name).default_chunks();
}

PipelineSchedule make_schedule(const ScheduleRequest& request) {
  assert(check(request).empty());
  const PublishedSchedule& schedule = published(request.name);
  const StageCosts costs = costs_of(request);
  ScheduleNumbers numbers{.stages = static_cast<std::int32_t>(request.stages),
                          .microbatches = static_cast<std::int32_t>(request.microbatches),
                          .chunks = static_cast<std::int32_t>(chunks_of(request)),
                          .memory = request.memory.value_or(ActivationMemory{}),
                          .costs = costs};
  if (schedule.has_groups) {
    const std::int64_t group =
        request.microbatch_group ? *request.microbatch_group
                                 : *default_microbatch_group(request.stages, request.microbatches);
    numbers.microbatch_group = static_cast<std::int32_t>(group);
  }
  if (schedule.planning) {
    const std::int64_t usual = schedule.planning->usual_limit_in_stages * request.stages;
    numbers.memory_limit = request.memory_limit.value_or(usual);
  }
  return schedule.make(numbers);
}

}  // namespace stepsim
