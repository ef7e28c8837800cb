// The machine-readable result of `stepsim run`: one object, whose members the tables below declare.
// Breakdown and critical path each add up to step_time_s; memory categories add up to peak_bytes.
// Two equal runs give the same bytes except for `simulator`, which comes last.

#pragma once

#include <string>

#include "experiment/step/step_report.h"
#include "traces/results/result_table.h"

namespace stepsim {

// All members but `simulator`.
const ResultTable<StepReport>& step_results();

const ResultTable<SimulatorStatistics>& simulator_results();

// Of packets with a transport.
const ResultTable<TransportTotals>& transport_results();

// Returns both, with a newline at the end.
std::string result_json(const StepReport& report);

}  // namespace stepsim
