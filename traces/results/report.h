// report() is the table that `stepsim run` prints: the most important results at a glance, at most
// 100 columns wide. Columns add up as printed: parts are rounded together (largest remainder), so
// that they add up to the printed sum.
//
// Bars need a terminal that shows UTF-8 block characters.

#pragma once

#include <string>

#include "experiment/step/step_report.h"

namespace stepsim {

struct ReportOptions {
  bool color = false;       // ANSI colours: for terminals
  std::string trace_path;   // file of the trace; empty: none was written
  std::string json_path;    // file of the JSON; empty: none was written
  std::string html_path{};  // of the page; empty: none was written
};

std::string report(const StepReport& report, const ReportOptions& options);

}  // namespace stepsim
