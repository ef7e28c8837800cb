// What `stepsim schedule` tells: the table on the terminal, and the JSON.

#pragma once

#include <optional>
#include <string>

#include "cli/schedule/schedule_comparison.h"
#include "cli/schedule/schedule_options.h"

namespace stepsim {

// In ANSI colours where standard output shows them. `own` is in picoseconds.
std::string schedule_report(const ScheduleOptions& options, const PlayedSchedule& own,
                            const std::optional<Comparison>& comparison);

std::string schedule_json(const ScheduleOptions& options, const PlayedSchedule& own,
                          const std::optional<Comparison>& comparison);

}  // namespace stepsim
