// Short functions that make ops and empty schedules, for the generators of schedules.

#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "schedules/pipeline/pipeline_schedule.h"

namespace stepsim {

using RankOrder = std::vector<PipelineOp>;

inline PipelineOp forward_op(std::int32_t microbatch, std::int32_t chunk = 0) {
  return {PipelineOpKind::kForward, microbatch, chunk};
}
inline PipelineOp backward_op(std::int32_t microbatch, std::int32_t chunk = 0) {
  return {PipelineOpKind::kBackward, microbatch, chunk};
}
inline PipelineOp input_op(std::int32_t microbatch, std::int32_t chunk = 0) {
  return {PipelineOpKind::kBackwardInput, microbatch, chunk};
}
inline PipelineOp weight_op(std::int32_t microbatch, std::int32_t chunk = 0) {
  return {PipelineOpKind::kBackwardWeight, microbatch, chunk};
}
// Returns the W of the same micro-batch and chunk as this B.
inline PipelineOp weight_of(const PipelineOp& input) {
  return weight_op(input.microbatch, input.chunk);
}
// REQUIRES: `forward` and `backward` are a kForward and a kBackward.
inline PipelineOp fused_op(const PipelineOp& forward, const PipelineOp& backward) {
  assert(forward.kind == PipelineOpKind::kForward && backward.kind == PipelineOpKind::kBackward);
  return {PipelineOpKind::kForwardBackward, forward.microbatch, forward.chunk, backward.microbatch,
          backward.chunk};
}

struct ScheduleShape {
  std::int32_t stages = 0;  // ranks of the pipeline
  std::int32_t microbatches = 0;
  std::int32_t chunks = 1;
  Placement placement = Placement::kLoop;
};

// `order_of_rank(rank)` returns the RankOrder of that rank.
template <typename OrderOfRank>
PipelineSchedule schedule_by_rank(const ScheduleShape& shape, const OrderOfRank& order_of_rank) {
  PipelineSchedule schedule{
      .microbatches = shape.microbatches, .chunks = shape.chunks, .placement = shape.placement};
  for (std::int32_t rank = 0; rank < shape.stages; ++rank) {
    schedule.ranks.push_back(order_of_rank(rank));
  }
  return schedule;
}

}  // namespace stepsim
