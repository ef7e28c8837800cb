// Memory over time by category, of one rank a stage and of the one that needs most; and what the
// latter holds at its peak.

#pragma once

#include "experiment/finished_run.h"
#include "proto/messages/json_value.h"

namespace stepsim {

// {"tick_s", "end", "unit_bytes", "capacity": units, "categories": [...],
//  "ranks": [{"name", "peak_at": ticks, "at": [ticks...], "held": [[units by sample] by category],
//             "alive": [{"microbatch", "layers": "0 to 19", "count"}...]}...]}
// The first rank needs most of those that were recorded. A sample holds from its time on; of many
// in a row the one with most is kept. `alive`: at the peak, layers between the begin of their
// first pass and the end of their last.
Json memory_curves(const FinishedRun& run);

}  // namespace stepsim
