// What `stepsim compare --json` writes.

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/compare/comparison.h"
#include "cli/subcommand.h"

namespace stepsim {

// Returns what a line of a run has more than the first run's; nullopt if neither has it.
std::optional<double> change_of(const ComparedLine& line, std::size_t run);
std::string_view unit_name(LineUnit unit);  // "s", "B", "share", "number"

std::string comparison_json_of(const std::vector<ComparedRun>& runs,
                               const RunComparison& comparison);

std::vector<CommandResult> compare_command_results();

}  // namespace stepsim
