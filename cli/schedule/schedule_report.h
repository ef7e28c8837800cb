// Writes the results of `stepsim schedule`: the table on the terminal, and the JSON.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/schedule/schedule_comparison.h"
#include "cli/schedule/schedule_options.h"
#include "cli/subcommand.h"

namespace stepsim {

// Uses ANSI colours if standard output shows them. Times of `own` are in picoseconds.
std::string schedule_report(const ScheduleOptions& options, const PlayedSchedule& own,
                            const std::optional<Comparison>& comparison);

std::string schedule_json(const ScheduleOptions& options, const PlayedSchedule& own,
                          const std::optional<Comparison>& comparison);

std::vector<CommandResult> schedule_command_results();

}  // namespace stepsim
