// Writes an experiment's published figures beside the simulated ones, for the report of a run, for
// its JSON and for `stepsim catalog experiments`.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiment/step/published_comparison.h"
#include "traces/results/report_text.h"
#include "traces/results/result_table.h"

namespace stepsim {

// Returns a figure as a person writes it: "19.93 s", "41.0 %", "238,300", "400 TFLOP/s", "60.0 GB".
std::string published_value_text(PublishedMetric metric, double value);

// Returns "step time", "MFU" or "tokens/s".
std::string_view published_label(PublishedMetric metric);

// Adds at least two lines per comparison: published, simulated and the difference; then the source
// and, if they are given, the plan that was measured and why the simulation differs.
void add_published(ReportText& text, const std::vector<PublishedComparison>& comparisons);

// In SI base units.
const ResultTable<PublishedComparison>& published_results();

}  // namespace stepsim
