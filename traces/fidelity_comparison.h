// One experiment on several network models, side by side: what the models agree on (compute), and
// what only some of them see (links that are shared, queues, whole packets). The difference between
// two columns is itself an answer: flow - latency-bandwidth is what contention costs, packet - flow
// what queues, headers and store-and-forward cost.

#pragma once

#include <string>
#include <vector>

#include "analysis/step/step_report.h"
#include "traces/report.h"

namespace stepsim {

// A table with a column for each run. REQUIRES: at least two runs of the same experiment.
std::string comparison_report(const std::vector<StepReport>& reports, const ReportOptions& options);

// {name, granularity, experiment, runs: [the object of result_json() for each]}. Ends in a newline.
std::string comparison_json(const std::vector<StepReport>& reports);

}  // namespace stepsim
