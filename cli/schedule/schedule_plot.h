// The picture of `stepsim schedule --plot`.

#pragma once

#include <string>

#include "schedules/pipeline/pipeline_schedule.h"
#include "schedules/pipeline/replay/replay.h"
#include "schedules/pipeline/stage_costs.h"
#include "traces/pictures/timeline_svg.h"

namespace stepsim {

// Slices are the ops with their micro-batches, pale on odd chunks; the curve is what a rank holds,
// in micro-batches of a chunk. REQUIRES: costs are picoseconds.
TimelinePlot schedule_plot(const std::string& name, const PipelineSchedule& schedule,
                           const StageCosts& costs, const PipelineReplay& replayed);

}  // namespace stepsim
