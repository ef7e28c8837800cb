// Draws a pipeline schedule as lines of text, one per rank:
//
//   rank 0  F0F1F2F3......BW0-F4BW1-
//   rank 1  ..F0F1F2....BW0-F3BW1-F4
//
// F, B, W, BW and FB are the ops, in lower case on odd chunks, with the micro-batch if there is
// room. A dash continues an op; a dot is idle time. A line is at most kReportWidth wide. A chart
// that does not fit is cut into up to four panels, one below the other, so that every op is at
// least a column wide. If more panels would be needed, a column shows the op that takes most of it,
// and the last line says so.

#pragma once

#include <string>
#include <vector>

#include "schedules/pipeline/pipeline_schedule.h"
#include "schedules/pipeline/replay/replay.h"
#include "schedules/pipeline/stage_costs.h"

namespace stepsim {

// Shows only the first and the last of many ranks, with a line "..." between. The last line is the
// scale. Uses ANSI colours if `color`. REQUIRES: costs are picoseconds.
std::vector<std::string> gantt_lines(const PipelineSchedule& schedule, const StageCosts& costs,
                                     const PipelineReplay& replayed, bool color);

}  // namespace stepsim
