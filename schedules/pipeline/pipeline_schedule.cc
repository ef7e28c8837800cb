#include "schedules/pipeline/pipeline_schedule.h"

namespace stepsim {

std::int32_t stage_count(const PipelineSchedule& schedule) {
  return schedule.size() * (schedule.placement == Placement::kBidirectional ? 1 : schedule.chunks);
}

std::int32_t stage_of(const PipelineSchedule& schedule, std::int32_t rank, std::int32_t chunk) {
  const std::int32_t ranks = schedule.size();
  switch (schedule.placement) {
    case Placement::kLoop:
      return chunk * ranks + rank;
    case Placement::kV:
      return chunk % 2 == 0 ? chunk * ranks + rank : (chunk + 1) * ranks - 1 - rank;
    case Placement::kBidirectional:
      break;
  }
  return chunk == 0 ? rank : ranks - 1 - rank;
}

std::int32_t chunk_of(const PipelineSchedule& schedule, std::int32_t microbatch,
                      std::int32_t stage) {
  if (schedule.placement == Placement::kBidirectional) {
    return microbatch < schedule.microbatches / 2 ? 0 : 1;
  }
  return stage / schedule.size();
}

std::int32_t rank_of(const PipelineSchedule& schedule, std::int32_t microbatch,
                     std::int32_t stage) {
  const std::int32_t along = stage % schedule.size();
  const bool turns_back =
      chunk_of(schedule, microbatch, stage) % 2 == 1 && schedule.placement != Placement::kLoop;
  return turns_back ? schedule.size() - 1 - along : along;
}

bool shares_ways(const PipelineSchedule& schedule) {
  return schedule.placement == Placement::kV && schedule.chunks > 2;
}

std::string to_text(const PipelineOp& op) {
  const std::string first = std::to_string(op.microbatch) + "." + std::to_string(op.chunk);
  switch (op.kind) {
    case PipelineOpKind::kForward:
      return "F" + first;
    case PipelineOpKind::kBackward:
      return "BW" + first;
    case PipelineOpKind::kBackwardInput:
      return "B" + first;
    case PipelineOpKind::kBackwardWeight:
      return "W" + first;
    case PipelineOpKind::kForwardBackward:
      break;
  }
  return "FB" + first + "/" + std::to_string(op.backward_microbatch) + "." +
         std::to_string(op.backward_chunk);
}

}  // namespace stepsim
