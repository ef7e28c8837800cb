#include "schedules/pipeline/pipeline_schedule.h"

namespace stepsim {

std::string to_text(const PipelineOp& op) {
  return (op.kind == PipelineOpKind::kForward ? "F" : "BW") + std::to_string(op.microbatch) + "." +
         std::to_string(op.chunk);
}

}  // namespace stepsim
