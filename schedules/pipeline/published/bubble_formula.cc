#include "schedules/pipeline/published/bubble_formula.h"

#include <cassert>

namespace stepsim {

std::optional<BubbleFormula> bubble_formula(const ScheduleRequest& request) {
  assert(check(request).empty());
  const PublishedSchedule& schedule = published(request.name);
  if (schedule.bubble == nullptr) return std::nullopt;
  const StageCosts costs = costs_of(request);
  const PipelineCosts longest = longest_stage(costs);
  BubbleFormula formula =
      schedule.bubble({.p = request.stages,
                       .m = request.microbatches,
                       .v = chunks_of(request),
                       .f = longest.forward,
                       .b = longest.backward_input,
                       .w = longest.backward_weight,
                       .l = longest.send,
                       .fused = longest.fused,
                       .has_own_memory = !request.memory_limit && !request.memory});
  if (!costs.are_even()) {
    formula.broken.insert(formula.broken.begin(),
                          "all stages must take the same times: it is worked out with the longest");
  }
  return formula;
}

}  // namespace stepsim
