// Rules by which the runtimes of several schedules post their messages (posting.h).
//
//   kPostAroundOps  naive, GPipe, 1F1B, zb_h1_quickstart (Megatron-LM, schedules.py: forward_
//                   backward_pipelining_without_interleaving). The output of an op goes out behind
//                   it, and the input of the next op comes in before that: between a forward and a
//                   backward in one batch, else in two.
//   kPostByTurns    interleaved 1F1B (the same file, ..._with_interleaving, without
//                   overlap_p2p_communication). A batch stands behind each forward of the warm-up
//                   and then behind each pair of forward and backward, with the message that the
//                   rank before makes meanwhile.
//   kPostAsPlanned  zero bubble schedules (zerobubble/scheduler/communication.py and runtime.py),
//                   and every other one, for which no runtime with batches is published. Both ranks
//                   put a message where its making ends in a replay with planned times. A receive
//                   that falls into an op goes before it. Neighbours in the list are one batch, up
//                   to the input of the next op. An op waits for the batch that brings its input.
//
// With the first two rules an op waits for all batches before it, because those runtimes wait for
// each batch when they post it. Rules are linear in the ops (kPostAsPlanned sorts them).

#pragma once

#include "schedules/pipeline/posting.h"

namespace stepsim {

Posting post_around_ops(const PipelineSchedule& schedule, const StageCosts& costs);
Posting post_by_turns(const PipelineSchedule& schedule, const StageCosts& costs);
Posting post_as_planned(const PipelineSchedule& schedule, const StageCosts& costs);

inline constexpr PostingRule kPostAroundOps{post_around_ops,
                                            "around each op, as Megatron-LM posts them"};
inline constexpr PostingRule kPostByTurns{post_by_turns,
                                          "behind each pair of ops, as Megatron-LM posts them"};
inline constexpr PostingRule kPostAsPlanned{post_as_planned,
                                            "as planned, by the zero bubble runtime", true};

}  // namespace stepsim
