// Writes an experiment's published figures beside the simulated ones, for the report of a run, for
// its JSON and for `stepsim catalog experiments`.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiment/step/published_comparison.h"
#include "traces/results/report_text.h"

namespace stepsim {

// Returns a figure as a person writes it: "19.93 s", "41.0 %", "238,300", "400 TFLOP/s", "60.0 GB".
std::string published_value_text(PublishedMetric metric, double value);

// Returns "step time", "MFU" or "tokens/s".
std::string_view published_label(PublishedMetric metric);

// Adds at least two lines per comparison: published, simulated and the difference; then the source
// and, if they are given, the plan that was measured and why the simulation differs.
void add_published(ReportText& text, const std::vector<PublishedComparison>& comparisons);

// Returns [{metric, published, simulated, ratio, low, high, as_expected, attention_flops, source,
// plan, why}...] in SI base units. attention_flops, plan and why are left out if they do not apply.
std::string published_json(const std::vector<PublishedComparison>& comparisons);

}  // namespace stepsim
