// PipelineCosts: how long the ops of a pipeline take, for schedules that are planned by time and
// for replay(). Whole numbers of any unit (picoseconds, say): sums are exact.

#pragma once

#include <cstdint>

#include "schedules/pipeline/pipeline_schedule.h"

namespace stepsim {

// Of one micro-batch on one chunk.
struct PipelineCosts {
  std::int64_t forward = 1;
  std::int64_t backward_input = 1;
  std::int64_t backward_weight = 1;
  std::int64_t send = 0;  // from one rank to another; between chunks of one rank it is free

  std::int64_t backward() const { return backward_input + backward_weight; }
  std::int64_t all() const { return forward + backward(); }
};

// What a micro-batch holds on a chunk while a schedule is planned within a memory limit: `forward`
// from F on, `weight` of it from B until W. Any unit; limits are in micro-batches, `forward` each.
struct ActivationMemory {
  std::int64_t forward = 1;
  std::int64_t weight = 1;
};

// How long an op takes whose chunks all have these costs; a fused one as long as its two parts.
inline std::int64_t time_of(const PipelineOp& op, const PipelineCosts& costs) {
  switch (op.kind) {
    case PipelineOpKind::kForward:
      return costs.forward;
    case PipelineOpKind::kBackward:
      return costs.backward();
    case PipelineOpKind::kBackwardInput:
      return costs.backward_input;
    case PipelineOpKind::kBackwardWeight:
      return costs.backward_weight;
    case PipelineOpKind::kForwardBackward:
      break;
  }
  return costs.all();
}

}  // namespace stepsim
