// Reads GOAL schedules, those of LogGOPSim (spcl/LogGOPSim@76451de): the text format.
//
//   num_ranks 2
//   rank 0 {
//     l1: calc 100
//     l2: send 8b to 1 tag 0 cpu 0
//     l2 requires l1
//   }
//
// `calc T` takes T nanoseconds, `cpu n` of each rank one op at a time. `a requires b` waits for the
// end of b, `a irequires b` for its start, which is the end of what b waits for. `nic n` counts for
// nothing. Sends and receives of equal source and tag match in the order in which they stand.
//
// Every bad line is a problem with its number (at most 20). Cost: O(bytes).

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "import/trace_job.h"
#include "sim/base/error.h"

namespace stepsim {

struct GoalJob {
  TraceJob job;
  std::vector<std::string> notes;
};
GoalJob read_goal(std::string_view text, const std::string& path, std::vector<Problem>& problems);

// Returns a job as a schedule: collectives and kernels without times are problems, as GOAL has
// neither.
std::string goal_text(const TraceJob& job, std::vector<Problem>& problems);

}  // namespace stepsim
