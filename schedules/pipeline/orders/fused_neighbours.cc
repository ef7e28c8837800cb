#include "schedules/pipeline/orders/fused_neighbours.h"

#include <algorithm>
#include <utility>

namespace stepsim {

PipelineSchedule fused_neighbours(PipelineSchedule schedule) {
  for (std::vector<PipelineOp>& order : schedule.ranks) {
    std::vector<PipelineOp> fused;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const bool has_next = i + 1 < order.size();
      if (order[i].kind != PipelineOpKind::kBackward || !has_next ||
          order[i + 1].kind != PipelineOpKind::kForward) {
        fused.push_back(order[i]);
        continue;
      }
      const PipelineOp& backward = order[i];
      const PipelineOp& forward = order[++i];
      fused.push_back({.kind = PipelineOpKind::kForwardBackward,
                       .microbatch = forward.microbatch,
                       .chunk = forward.chunk,
                       .backward_microbatch = backward.microbatch,
                       .backward_chunk = backward.chunk});
    }
    order = std::move(fused);
  }
  return schedule;
}

bool has_fused_ops(const PipelineSchedule& schedule) {
  return std::ranges::any_of(schedule.ranks, [](const std::vector<PipelineOp>& order) {
    return std::ranges::any_of(
        order, [](const PipelineOp& op) { return op.kind == PipelineOpKind::kForwardBackward; });
  });
}

}  // namespace stepsim
