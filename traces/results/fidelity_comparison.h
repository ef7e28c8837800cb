// Compares one experiment on several network models, side by side. All models agree on compute.
// Only some see shared links, queues or whole packets. The difference between two columns is itself
// an answer: flow - latency-bandwidth is the cost of contention; packet - flow is the cost of
// queues, headers and store-and-forward.

#pragma once

#include <string>
#include <vector>

#include "experiment/step/step_report.h"
#include "traces/results/report.h"

namespace stepsim {

// Returns a table with a column for each run. REQUIRES: at least two runs of the same experiment.
std::string comparison_report(const std::vector<StepReport>& reports, const ReportOptions& options);

}  // namespace stepsim
