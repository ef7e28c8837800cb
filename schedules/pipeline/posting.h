// A Posting says how a runtime posts the messages between ranks: in batches, at given places in the
// list of ops of each rank. (A PipelineSchedule alone does not say that. In replay() a message
// travels as soon as its op ends.)
//
// A rank has one line of batches, in the order of its list. A batch starts when the ops before it
// in the list have run and the batch before it has ended. Each of its messages starts when both
// ranks have started their batches. The batch ends with its last message. NCCL treats the sends and
// receives of a group this way, and PyTorch the groups of one communicator (batch_isend_irecv).
//
// A PostingRule makes the posting of a schedule. Rules that several schedules share are in
// replay/posting_rules.h. A rule of only one schedule is in that schedule's file in orders/.

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

// PostedMessage is one half of a message between ranks: the input of a pass over a chunk, or its
// output.
struct PostedMessage {
  bool is_send = false;
  bool is_activation = false;  // false: the gradient of one
  std::int32_t microbatch = 0;
  std::int32_t chunk = 0;  // chunk of this rank whose pass sends or receives it
  friend auto operator<=>(const PostedMessage&, const PostedMessage&) = default;
};

struct PostedBatch {
  std::size_t before = 0;  // index of the op behind it; the size of the list: after all ops
  std::vector<PostedMessage> messages{};
};

struct Posting {
  std::vector<std::vector<PostedBatch>> ranks{};
  bool waits_for_all = false;  // false: an op waits only for the batch of its input
};

struct PostingRule {
  // REQUIRES: check_order(schedule) is empty, and the rule was made for this schedule.
  Posting (*post)(const PipelineSchedule& schedule, const StageCosts& costs);
  std::string_view words;  // follows "messages in batches" in reports
  bool by_times = false;   // the places of messages depend on the costs
};

// MessageWay is the route of a message to or from another rank.
struct MessageWay {
  std::int32_t peer = 0;      // rank at the other end
  std::int32_t boundary = 0;  // between global stages `boundary` and `boundary` + 1
};
// Returns nullopt at the ends of the pipeline and if the neighbouring stage is on the same rank.
std::optional<MessageWay> way_of(const PipelineSchedule& schedule, std::int32_t rank,
                                 const PostedMessage& message);

// Return the messages that an op receives from other ranks and those that it sends to them. A fused
// op has two of each; W has none.
std::vector<PostedMessage> inputs_of(const PipelineSchedule& schedule, std::int32_t rank,
                                     const PipelineOp& op);
std::vector<PostedMessage> outputs_of(const PipelineSchedule& schedule, std::int32_t rank,
                                      const PipelineOp& op);

}  // namespace stepsim
