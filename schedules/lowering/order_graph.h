// order_graph() turns a pipeline schedule alone into an op graph: one program per rank, ops of
// given times on its compute stream, and messages without bytes to neighbouring ranks. On a network
// that takes the send time for a message, simulate() gives what replay() computes
// (experiment/step/schedule_run.h): lists run strictly in order, and sends delay nobody.
//
//   stream              ops
//   compute             the rank's list, one op an entry, a fused one too
//   receive activation  one receive an op that needs one, posted ahead; so for gradients
//   send activation     one eager send an op, from the op's end. As many of these streams as sends
//                       can be under way at once, since a stream waits for its send to arrive
//
// With a posting (schedules/pipeline/posting.h) the messages go in its batches, on one stream of
// the rank and with rendezvous. They then take the times that replay_posted() computes.
//
// Micro-batch and boundary identify a message, so each finds its receive in any order. Each
// micro-batch of a chunk holds one byte of activations, from the start of F to the end of W or BW,
// so memory peaks count micro-batches in flight. A rank is the chip whose number is the rank, and
// computes one FLOP per picosecond (order_chip()).

#pragma once

#include "schedules/pipeline/pipeline_schedule.h"
#include "schedules/pipeline/posting.h"
#include "schedules/pipeline/stage_costs.h"
#include "sim/chips/chip_spec.h"
#include "sim/program/op_graph.h"

namespace stepsim {

// REQUIRES: check_order(schedule) is empty; costs are picoseconds and positive, except that the
// send time may be 0; the send time is the same for all stages; the posting belongs to this
// schedule. Linear in the ops.
OpGraph order_graph(const PipelineSchedule& schedule, const StageCosts& costs,
                    const Posting* posting = nullptr);

// Returns the chip on which kernels of order_graph() take their times to the picosecond.
ChipSpec order_chip();

}  // namespace stepsim
