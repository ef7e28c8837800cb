// How the runtime of a schedule's authors posts the messages between ranks: in batches, at given
// places in the list of ops of each rank. (By itself a PipelineSchedule says nothing about that,
// and in replay() a message travels from the end of its op on.)
//
// A rank has one line of batches, in the order of its list: a batch starts when what stands before
// it in the list has run and the batch before it has ended, each of its messages when both ranks
// have started theirs, and it ends with its last message. So NCCL does with the sends and receives
// of a group, and PyTorch with the groups of one communicator (batch_isend_irecv).
//
//   kAroundOps  naive, GPipe, 1F1B, zb_h1_quickstart (Megatron-LM, schedules.py: forward_backward_
//               pipelining_without_interleaving). What an op has made goes out behind it, and what
//               the next one takes comes in before it: between a forward and a backward in one
//               batch, else in two.
//   kByTurns    interleaved 1F1B (the same file, ..._with_interleaving, without
//               overlap_p2p_communication). A batch behind each forward of the warm-up and then
//               behind each pair of forward and backward, with what the rank before makes
//               meanwhile.
//   kCommitted  DualPipe and DualPipeV (dualpipe.py: _commit_and_wait_comm): sends and receives are
//               noted, and all that are noted go as one batch before the next op: dual_pipe.h.
//   kPlanned    zero bubble schedules (zerobubble/scheduler/communication.py and runtime.py), and
//               every other one, for which no runtime with batches is published. Both ranks put a
//               message where its making ends in a replay with planned times; a receive that falls
//               into an op goes before it. Neighbours in the list are one batch, up to the input of
//               the next op.
//
// With kPlanned an op waits for the batch that brings its input, with the others for all batches
// before it (their runtimes wait for each batch as they post it).

#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "schedules/pipeline/pipeline_schedule.h"
#include "schedules/pipeline/replay/stage_costs.h"
#include "schedules/pipeline/schedule_name.h"

namespace stepsim {

enum class PostingRule : std::uint8_t { kAroundOps, kByTurns, kCommitted, kPlanned };
PostingRule posting_rule(ScheduleName name);

// One half of a message between ranks: what a pass over a chunk takes, or what it has made.
struct PostedMessage {
  bool is_send = false;
  bool is_activation = false;  // or the gradient of one
  std::int32_t microbatch = 0;
  std::int32_t chunk = 0;  // of this rank, whose pass makes it or takes it
  friend auto operator<=>(const PostedMessage&, const PostedMessage&) = default;
};

struct PostedBatch {
  std::size_t before = 0;  // the op of the rank's list; the size of the list: behind all
  std::vector<PostedMessage> messages{};
};

struct Posting {
  std::vector<std::vector<PostedBatch>> ranks{};
  bool waits_for_all = false;  // each op for all batches before it; else for its input's
};

// The other end of a message: nobody at the ends of the pipeline and where the neighbouring stage
// is on the same rank.
struct MessageWay {
  std::int32_t peer = -1;      // rank; -1: nobody
  std::int32_t boundary = -1;  // between global stages `boundary` and `boundary` + 1
};
MessageWay way_of(const PipelineSchedule& schedule, std::int32_t rank,
                  const PostedMessage& message);

// What an op takes from other ranks and makes for them: a fused op two of each, W nothing.
std::vector<PostedMessage> inputs_of(const PipelineSchedule& schedule, std::int32_t rank,
                                     const PipelineOp& op);
std::vector<PostedMessage> outputs_of(const PipelineSchedule& schedule, std::int32_t rank,
                                      const PipelineOp& op);

// REQUIRES: check_order(schedule) is empty, and the schedule is one that has the rule (any with
// kPlanned). `costs` are read with kPlanned only. Linear in the ops (kPlanned: sorted).
Posting make_posting(PostingRule rule, const PipelineSchedule& schedule, const StageCosts& costs);

}  // namespace stepsim
