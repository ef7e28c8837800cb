// split_backwards() replaces each BW of an order by B, W and each FB by F, B, W. No op runs later
// after that, and no more micro-batches are in flight.

#pragma once

#include "schedules/pipeline/pipeline_schedule.h"

namespace stepsim {

PipelineSchedule split_backwards(const PipelineSchedule& schedule);

}  // namespace stepsim
