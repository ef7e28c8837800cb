// replay() runs the lists of a schedule with given times, without a network. Every rank runs its
// ops strictly in order, one at a time. An op starts as soon as the rank is free and the op's
// inputs are there. replay() shares no code with simulate(), so that each can check the other.
//
//   const PipelineReplay replayed = replay(schedule, {.forward = 10, .backward_input = 12,
//                                                     .backward_weight = 8, .send = 1});
//   replayed.bubble();      // makespan - the busiest rank's work
//
// An op of micro-batch i on stage s of S needs:
//
//   F(i, s)    F(i, s - 1), and a send if that is on another rank
//   B, BW      F(i, s), and B or BW(i, s + 1) and a send; on the last stage only F(i, S - 1)
//   W(i, s)    B(i, s)
//   FB         what its F and its BW need; both results are there when it ends
//
// A rank holds the activation of a micro-batch on a chunk from the start of F to the end of W or
// BW. FB takes the new one before it releases the old one. Times are whole numbers. Linear in the
// ops.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedules/pipeline/pipeline_costs.h"
#include "schedules/pipeline/pipeline_schedule.h"
#include "schedules/pipeline/stage_costs.h"

namespace stepsim {

struct PipelineReplay {
  std::vector<std::vector<std::int64_t>> starts{};  // start of each op, by rank
  std::vector<std::int64_t> peak_in_flight{};       // by rank: micro-batches x chunks
  std::int64_t makespan = 0;                        // latest end of all ranks, from time 0
  std::int64_t ideal = 0;                           // work of the busiest rank
  std::int64_t span_bubble = 0;   // most that a rank idles between its first start and last end
  std::int64_t longest_span = 0;  // of a rank, from its first start to its last end

  std::int64_t bubble() const { return makespan - ideal; }
};

// REQUIRES (here and below): check_order(schedule) finds no op that is missing, doubled or unknown.
// Throws ConfigError with the circle of waits if the lists cannot run.
PipelineReplay replay(const PipelineSchedule& schedule, const PipelineCosts& costs);

// Returns nullopt if the lists cannot run.
std::optional<PipelineReplay> try_replay(const PipelineSchedule& schedule, const StageCosts& costs);

PipelineReplay replay(const PipelineSchedule& schedule, const StageCosts& costs);

// Returns the circle of waits that keeps the lists from running, one wait per line; "" if they run:
//   rank 0 at BW0.0 (op 2 of its list) waits for the backward of micro-batch 0 on chunk 0, which is
//   op 4 on rank 1
std::string find_cycle(const PipelineSchedule& schedule);

}  // namespace stepsim
