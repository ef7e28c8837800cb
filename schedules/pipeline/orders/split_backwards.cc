#include "schedules/pipeline/orders/split_backwards.h"

#include <utility>

#include "schedules/pipeline/op_makers.h"

namespace stepsim {

PipelineSchedule split_backwards(const PipelineSchedule& schedule) {
  PipelineSchedule split = schedule;
  for (RankOrder& order : split.ranks) {
    RankOrder ops;
    for (const PipelineOp& op : order) {
      const bool is_fused = op.kind == PipelineOpKind::kForwardBackward;
      if (is_fused) ops.push_back(forward_op(op.microbatch, op.chunk));
      if (is_fused || op.kind == PipelineOpKind::kBackward) {
        ops.push_back(is_fused ? input_op(op.backward_microbatch, op.backward_chunk)
                               : input_op(op.microbatch, op.chunk));
        ops.push_back(weight_of(ops.back()));
      } else {
        ops.push_back(op);
      }
    }
    order = std::move(ops);
  }
  return split;
}

}  // namespace stepsim
