// What the chips of drawn ranks draw over time.

#pragma once

#include "experiment/finished_run.h"
#include "proto/messages/json_value.h"

namespace stepsim {

// {"end": seconds, "y": "number", "lines": [{"name": "stage 0", "at": [seconds...],
//  "values": [watts...]}...]}, of at most eight stages. A value is the mean of an equal part of the
// run, from its time on; the last one stands at the end, too. null: the chip doesn't say its power.
Json watts_curve(const FinishedRun& run);

}  // namespace stepsim
