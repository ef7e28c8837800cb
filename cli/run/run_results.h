// What `stepsim run --json` writes: a run (traces/results/result_json.h) with what it would be on
// other hardware, or one run for each of several network models.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/run/what_if.h"
#include "cli/subcommand.h"
#include "experiment/step/step_report.h"

namespace stepsim {

struct WhatIfFindings {
  std::optional<Sensitivity> sensitivity{};
  std::optional<Breakeven> breakeven{};
};

std::string run_json(const StepReport& report, const WhatIfFindings& what_if);

// One object for runs of one experiment that differ by their network model.
std::string runs_json(const std::vector<StepReport>& reports);

std::vector<CommandResult> run_command_results();

}  // namespace stepsim
