// All kernels of a step against the roofs of the chip.

#pragma once

#include "experiment/finished_run.h"
#include "proto/messages/json_value.h"

namespace stepsim {

// {"memory_bandwidth_bytes_per_s", "peaks": [{"type": "bf16", "flops_per_s"}...],
//  "kernels": [{"name", "type", "flops", "bytes", "time_s", "count", "share", "bound":
//  "memory"}...], "left_out": N, "left_out_share"}
// `time_s` is that of one kernel alone on the chip, by its model. `count` is of a step on a mean
// rank, and `share` is of all kernels' time. Kernels alike in name, type, FLOPs and bytes are one;
// the largest shares come first, at most 200.
Json kernel_roofline(const FinishedRun& run);

}  // namespace stepsim
