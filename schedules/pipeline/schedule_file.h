// parse_schedule() reads a pipeline schedule from the text of a file.
//
//   # one rank a line, ops in the order in which they run; # begins a comment
//   placement: v
//   F0.0 F1.0 F0.1 BW0.1 BW0.0 F1.1 BW1.1 BW1.0
//   F0.0 F0.1 BW0.1 F1.0 F1.1 BW0.0 BW1.1 BW1.0
//
// Ops are those of pipeline_schedule.h: F3.0, B3.0, W3.0, BW3.0, FB5.0/2.1 (micro-batch, dot, chunk
// on that rank). `placement:` says which stage a rank's chunk is. `loop`, the default: chunk c of
// rank r is stage c P + r. `v`: see Placement. `bidirectional`: two chunks for the two directions;
// the first half of the micro-batches is on chunk 0, the other half on chunk 1. The ops determine
// the number of micro-batches and chunks. Reading a file finds every op that cannot be read.
// check_order() (replay/check_order.h) then finds ops that are missing, doubled, out of place, or
// wait in a circle. A text of PyTorch's orders (torch_order.h) is read too.

#pragma once

#include <string>
#include <string_view>

#include "schedules/pipeline/pipeline_schedule.h"

namespace stepsim {

// Throws ConfigError with every line that can't be read. The result still needs check_order().
PipelineSchedule parse_schedule(std::string_view text);

// Returns the text of a file that reads as this schedule.
std::string write_schedule(const PipelineSchedule& schedule);

}  // namespace stepsim
