// split_backwards() replaces each BW of an order by B, W and each FB by F, B, W. No op is later
// then, and no more is in flight.

#pragma once

#include "schedules/pipeline/pipeline_schedule.h"

namespace stepsim {

PipelineSchedule split_backwards(const PipelineSchedule& schedule);

}  // namespace stepsim
