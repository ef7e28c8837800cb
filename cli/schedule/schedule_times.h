// Reads the times of `stepsim schedule`, --forward-time and similar: one for all stages or one for
// each.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "schedules/pipeline/published/make_schedule.h"
#include "sim/base/error.h"

namespace stepsim {

inline constexpr std::int64_t kSecond = 1'000'000'000'000;  // in picoseconds, the unit of all costs

// Stores the times in `request.costs` and, if they differ between stages, in `request.stage_costs`,
// in picoseconds. Adds what is wrong with them to `problems`.
void read_costs(const CommandLine& line, ScheduleRequest& request, std::vector<Problem>& problems);

// Splits "a,b,,c" into four words.
std::vector<std::string> split_at_commas(const std::string& text);

}  // namespace stepsim
