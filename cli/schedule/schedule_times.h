// The times of `stepsim schedule`: --forward-time and its kind, one for all stages or one of each.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "schedules/pipeline/published/make_schedule.h"
#include "sim/base/error.h"

namespace stepsim {

inline constexpr std::int64_t kSecond = 1'000'000'000'000;  // in picoseconds, the unit of all costs

// Puts them into `request.costs` and, where they differ from stage to stage, into
// `request.stage_costs`, in picoseconds; adds what is wrong with them to `problems`.
void read_costs(const CommandLine& line, ScheduleRequest& request, std::vector<Problem>& problems);

// "a,b,,c" as four words.
std::vector<std::string> split_at_commas(const std::string& text);

}  // namespace stepsim
