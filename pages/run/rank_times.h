// Where a step goes, by pipeline stage and by rank: seconds of each part of the breakdown.

#pragma once

#include "experiment/finished_run.h"
#include "proto/messages/json_value.h"

namespace stepsim {

// {"names": ["stage 0", ...], "parts": [{"name": "compute", "values": [s by stage]}...]}: the mean
// over the ranks of a stage.
Json stage_times(const FinishedRun& run);

// {"rows": ["stage 0", ...], "columns": N, "first": [[rank by column] by row], "together": ranks in
// a cell, "parts": [{"name", "values": [[s by column] by row]}...], "slow": [[row, column, rank,
// slowdown]...]}. More than 64 stages or 128
// ranks of a stage share cells, which have their mean; null: no rank.
Json rank_times(const FinishedRun& run);

}  // namespace stepsim
