// check_order() finds every rule that a schedule breaks, whatever its origin.

#pragma once

#include <vector>

#include "schedules/pipeline/pipeline_schedule.h"
#include "sim/base/error.h"

namespace stepsim {

// Every micro-batch and stage needs one F and either one BW or one B and one W, on the rank that
// holds the stage. F must precede B or BW, and B must precede W. Ranks must not wait for each other
// in a circle; a circle is reported wait by wait. Linear in the ops.
std::vector<Problem> check_order(const PipelineSchedule& schedule);

}  // namespace stepsim
