// Writes two steps that were compared as one Chrome trace: each rank's simulated timeline above its
// real one, both from the beginning of their step.

#pragma once

#include <functional>
#include <string_view>

#include "import/trace/device_trace.h"
#include "import/trace/step_diff.h"

namespace stepsim {

// Hands the text of the file to `write`, part by part. Slices are those that overlap the step;
// times are microseconds with three decimals. Cost: O(slices).
void write_diff_trace(const DeviceTrace& simulated, const DeviceTrace& real, const StepDiff& diff,
                      const std::function<void(std::string_view)>& write);

}  // namespace stepsim
