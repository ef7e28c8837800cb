// replay_posted() plays a schedule whose messages are posted in batches (posting.h), without a
// network. It does what replay() does for messages that travel separately. A message takes one send
// time from the moment when both its ends have started their batches.

#pragma once

#include "schedules/pipeline/posting.h"
#include "schedules/pipeline/replay/replay.h"
#include "schedules/pipeline/stage_costs.h"

namespace stepsim {

// Throws ConfigError with the names of the batches if ranks wait for each other. Linear in the ops.
// REQUIRES: the schedule can run (find_cycle() is empty) and the posting belongs to it.
PipelineReplay replay_posted(const PipelineSchedule& schedule, const StageCosts& costs,
                             const Posting& posting);

}  // namespace stepsim
