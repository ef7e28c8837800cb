// report() is the table that `stepsim run` prints: what a person wants to see first, at a glance
// and at most 100 columns wide. Columns add up as printed: parts are rounded together (largest
// remainder), so that they make the printed sum.
//
// Bars need a terminal that shows UTF-8 block characters.

#pragma once

#include <string>

#include "analysis/step/step_report.h"

namespace stepsim {

struct ReportOptions {
  bool color = false;      // ANSI colours: for terminals
  std::string trace_path;  // where the trace went; empty: nowhere
  std::string json_path;   // where the JSON went; empty: nowhere
};

std::string report(const StepReport& report, const ReportOptions& options);

}  // namespace stepsim
