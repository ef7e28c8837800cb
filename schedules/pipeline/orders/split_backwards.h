// split_backwards() makes each BW of an order B, W and each FB F, B, W: no op is later then, and no
// more is in flight.

#pragma once

#include "schedules/pipeline/pipeline_schedule.h"

namespace stepsim {

PipelineSchedule split_backwards(const PipelineSchedule& schedule);

}  // namespace stepsim
