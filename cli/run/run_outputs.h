// Writing down what came out of `stepsim run`: trace, JSON and table.

#pragma once

#include <vector>

#include "analysis/step/metrics.h"
#include "cli/run/run_options.h"

namespace stepsim {

// Writes the files, each in full or not at all, and then to standard output: the table, or the
// JSON where that was asked for. Several runs are those of one experiment on several network
// models: they come side by side, without a trace. Throws OutputError if something can't be
// written. REQUIRES: runs is not empty.
void write_outputs(const RunOptions& options, const std::vector<FinishedRun>& runs);

// True if no rank needs more memory than its chip has.
bool fits(const FinishedRun& run);

}  // namespace stepsim
