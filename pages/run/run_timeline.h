// The pipeline of a run over time as a picture: what the Gantt chart of its page shows, with the
// memory of each rank.

#pragma once

#include "experiment/finished_run.h"
#include "traces/pictures/timeline_svg.h"

namespace stepsim {

// REQUIRES: as run_drawings().
TimelinePlot run_timeline(const FinishedRun& run);

}  // namespace stepsim
