// check_order() finds every rule that a schedule breaks, wherever it comes from.

#pragma once

#include <vector>

#include "schedules/pipeline/pipeline_schedule.h"
#include "sim/base/error.h"

namespace stepsim {

// For every micro-batch and stage there must be one F and either one BW or one B and one W, on the
// rank that holds the stage; F before B or BW, B before W; and no circle of waits between ranks,
// which is reported wait by wait. Linear in the ops.
std::vector<Problem> check_order(const PipelineSchedule& schedule);

}  // namespace stepsim
