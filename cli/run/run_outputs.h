// Writing down what came out of `stepsim run`: trace, JSON and table.

#pragma once

#include <vector>

#include "cli/outputs.h"
#include "cli/run/run_options.h"
#include "cli/run/run_results.h"
#include "experiment/step/step_report.h"

namespace stepsim {

// WhatIfFindings is what was asked for beside the run.
// Writes the files, each in full or not at all, and then to standard output: the table, or the
// JSON where that was asked for. Several runs are those of one experiment on several network
// models: they come side by side, without a trace. `outputs` remembers what can't be written.
// REQUIRES: there is a report.
void write_outputs(const RunOptions& options, const std::vector<StepReport>& reports,
                   const WhatIfFindings& what_if, Outputs& outputs);

}  // namespace stepsim
