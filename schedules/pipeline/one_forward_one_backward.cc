#include "schedules/pipeline/one_forward_one_backward.h"

#include <algorithm>

namespace stepsim {

PipelineSchedule one_forward_one_backward(std::int32_t stages, std::int32_t microbatches) {
  PipelineSchedule schedule{.microbatches = microbatches};
  schedule.ranks.resize(static_cast<std::size_t>(stages));
  for (std::int32_t rank = 0; rank < stages; ++rank) {
    std::vector<PipelineOp>& order = schedule.ranks[static_cast<std::size_t>(rank)];
    const std::int32_t warm_up = std::min(stages - 1 - rank, microbatches);
    for (std::int32_t i = 0; i < warm_up; ++i) order.push_back({PipelineOpKind::kForward, i});
    for (std::int32_t i = 0; i < microbatches; ++i) {
      if (warm_up + i < microbatches) order.push_back({PipelineOpKind::kForward, warm_up + i});
      order.push_back({PipelineOpKind::kBackward, i});
    }
  }
  return schedule;
}

}  // namespace stepsim
