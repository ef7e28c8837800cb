// order_graph() makes a pipeline schedule by itself an op graph: a rank a program, ops of given
// times on its compute stream, and messages without bytes to the ranks next to it. Run on a
// network that takes the send time for a message it is what replay() computes (analysis/
// schedule_run.h): lists strictly in order, sends that hold up nobody.
//
//   stream              ops
//   compute             the rank's list, one op an entry, a fused one too
//   receive activation  one receive an op that needs one, posted ahead; so for gradients
//   send activation     one eager send an op, from the op's end. As many of these streams as sends
//                       can be under way at once, since a stream waits for its send to arrive
//
// With a posting (schedules/pipeline/posting.h) the messages go in its batches instead, on
// one stream of the rank and with rendezvous, and take what replay_posted() computes.
//
// A message is known by micro-batch and boundary, so that each finds its receive whatever the
// order. Each micro-batch of a chunk is one byte of activations, from the start of F to the end of
// W or BW: peaks of memory count what is in flight. A rank is a chip whose number is the rank, of
// one FLOP a picosecond (order_chip()).

#pragma once

#include "schedules/pipeline/pipeline_schedule.h"
#include "schedules/pipeline/posting.h"
#include "schedules/pipeline/stage_costs.h"
#include "sim/chips/chip_spec.h"
#include "sim/program/op_graph.h"

namespace stepsim {

// REQUIRES: check_order(schedule) is empty; costs are picoseconds, positive but for the send, which
// is the same for all stages; the posting is of this schedule. Linear in the ops.
OpGraph order_graph(const PipelineSchedule& schedule, const StageCosts& costs,
                    const Posting* posting = nullptr);

// The chip on which kernels of order_graph() take their times to the picosecond.
ChipSpec order_chip();

}  // namespace stepsim
