// A Posting says how a runtime posts the messages between ranks: in batches, at given places in the
// list of ops of each rank. (A PipelineSchedule by itself says nothing about that, and in replay()
// a message travels from the end of its op on.)
//
// A rank has one line of batches, in the order of its list. A batch starts when the ops before it
// in the list have run and the batch before it has ended. Each of its messages starts when both
// ranks have started their batches, and the batch ends with its last message. NCCL does so with the
// sends and receives of a group, and PyTorch with the groups of one communicator
// (batch_isend_irecv).
//
// A PostingRule makes the posting of a schedule. Rules that several schedules share are in
// replay/posting_rules.h; a rule of one schedule only stands in its file in orders/.

#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "schedules/pipeline/pipeline_schedule.h"
#include "schedules/pipeline/stage_costs.h"

namespace stepsim {

// One half of a message between ranks: the input of a pass over a chunk, or its output.
struct PostedMessage {
  bool is_send = false;
  bool is_activation = false;  // or the gradient of one
  std::int32_t microbatch = 0;
  std::int32_t chunk = 0;  // of this rank, whose pass makes the message or takes it
  friend auto operator<=>(const PostedMessage&, const PostedMessage&) = default;
};

struct PostedBatch {
  std::size_t before = 0;  // this op of the rank's list; the size of the list: behind all ops
  std::vector<PostedMessage> messages{};
};

struct Posting {
  std::vector<std::vector<PostedBatch>> ranks{};
  bool waits_for_all = false;  // an op waits for all batches before it; else for its input's only
};

struct PostingRule {
  // REQUIRES: check_order(schedule) is empty, and the schedule is one that the rule was made for.
  Posting (*post)(const PipelineSchedule& schedule, const StageCosts& costs);
  std::string_view words;  // behind "messages in batches"
  bool by_times = false;   // the places of messages depend on the costs
};

// The way of a message to or from another rank.
struct MessageWay {
  std::int32_t peer = 0;      // rank at the other end
  std::int32_t boundary = 0;  // between global stages `boundary` and `boundary` + 1
};
// Nothing at the ends of the pipeline, and where the neighbouring stage is on the same rank.
std::optional<MessageWay> way_of(const PipelineSchedule& schedule, std::int32_t rank,
                                 const PostedMessage& message);

// The messages that an op takes from other ranks and those that it makes for them: a fused op has
// two of each, W has none.
std::vector<PostedMessage> inputs_of(const PipelineSchedule& schedule, std::int32_t rank,
                                     const PipelineOp& op);
std::vector<PostedMessage> outputs_of(const PipelineSchedule& schedule, std::int32_t rank,
                                      const PipelineOp& op);

}  // namespace stepsim
