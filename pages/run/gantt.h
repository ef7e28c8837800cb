// The pipeline over time: one rank a stage, its passes, its gaps with their reasons, its
// communication by axis, and what of it is on the critical path. At most some 12,000 slices: short
// neighbours are shown as one.

#pragma once

#include "experiment/finished_run.h"
#include "proto/messages/json_value.h"

namespace stepsim {

// {"tick_s", "end": ticks, "texts": [...], "phases": [...], "parts": [...],
//  "ranks": [{"name", "passes": [[begin, length, text, phase, computing, [part, ticks, ...]]...],
//             "gaps": [[begin, length, text, part]...], "critical": [[begin, length]...],
//             "communication": [{"axis", "spans": [[begin, length]...]}...]}...]}
// in ticks, and indices into the lists above.
Json gantt(const FinishedRun& run);

}  // namespace stepsim
