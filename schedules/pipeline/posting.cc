#include "schedules/pipeline/posting.h"

#include <algorithm>

namespace stepsim {
namespace {

// Returns the messages of the op's passes, without those whose other end is on this rank or does
// not exist.
std::vector<PostedMessage> messages_of(const PipelineSchedule& schedule, std::int32_t rank,
                                       const PipelineOp& op, bool is_send) {
  std::vector<PostedMessage> messages;
  const auto pass = [&](bool is_activation, std::int32_t microbatch, std::int32_t chunk) {
    const PostedMessage message{is_send, is_activation, microbatch, chunk};
    if (way_of(schedule, rank, message)) messages.push_back(message);
  };
  switch (op.kind) {
    case PipelineOpKind::kForward:
      pass(true, op.microbatch, op.chunk);
      break;
    case PipelineOpKind::kBackward:
    case PipelineOpKind::kBackwardInput:
      pass(false, op.microbatch, op.chunk);
      break;
    case PipelineOpKind::kForwardBackward:
      pass(true, op.microbatch, op.chunk);
      pass(false, op.backward_microbatch, op.backward_chunk);
      break;
    case PipelineOpKind::kBackwardWeight:
      break;
  }
  return messages;
}

}  // namespace

std::optional<MessageWay> way_of(const PipelineSchedule& schedule, std::int32_t rank,
                                 const PostedMessage& message) {
  const std::int32_t here = stage_of(schedule, rank, message.chunk);
  const std::int32_t there = message.is_send == message.is_activation ? here + 1 : here - 1;
  if (there < 0 || there == stage_count(schedule)) return std::nullopt;
  const std::int32_t peer = rank_of(schedule, message.microbatch, there);
  if (peer == rank) return std::nullopt;
  return MessageWay{peer, std::min(here, there)};
}

std::vector<PostedMessage> inputs_of(const PipelineSchedule& schedule, std::int32_t rank,
                                     const PipelineOp& op) {
  return messages_of(schedule, rank, op, false);
}

std::vector<PostedMessage> outputs_of(const PipelineSchedule& schedule, std::int32_t rank,
                                      const PipelineOp& op) {
  return messages_of(schedule, rank, op, true);
}

}  // namespace stepsim
