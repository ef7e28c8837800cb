// How busy the links were over time, by kind of link.

#pragma once

#include "experiment/finished_run.h"
#include "proto/messages/json_value.h"

namespace stepsim {

// {"end_s", "kinds": [{"name", "links", "bytes", "bandwidth_bytes_per_s", "mean": 0..1, "busiest":
//  0..1, "over_time": [hundredths of a percent by bin]}...]}, the kind with the highest mean first.
//  A
// bin is an equal part of the run; at most 300. Only the first 12 kinds have `over_time`.
Json link_loads(const FinishedRun& run);

}  // namespace stepsim
