// replay_posted() plays a schedule whose messages are posted in batches (posting.h), without a
// network: what replay() does for messages that travel by themselves. A message takes the time of
// a send from the moment on which both its ends have started their batches.

#pragma once

#include "schedules/pipeline/posting.h"
#include "schedules/pipeline/replay/replay.h"
#include "schedules/pipeline/stage_costs.h"

namespace stepsim {

// Throws ConfigError, which names the batches, if the ranks wait for each other. Linear in the ops.
// REQUIRES: the schedule can run (find_cycle() is empty) and the posting is one of it.
PipelineReplay replay_posted(const PipelineSchedule& schedule, const StageCosts& costs,
                             const Posting& posting);

}  // namespace stepsim
