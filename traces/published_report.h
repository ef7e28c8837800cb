// What was published about an experiment beside what was simulated, for the report of a run, for
// its JSON and for `stepsim catalog experiments`.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/step/published_comparison.h"
#include "traces/report_text.h"

namespace stepsim {

// A figure as a person writes it: "19.93 s", "41.0 %", "238,300", "400 TFLOP/s", "60.0 GB".
std::string published_value_text(PublishedMetric metric, double value);

// "step time", "MFU", "tokens/s"
std::string_view published_label(PublishedMetric metric);

// Two lines or more for each comparison: published, simulated and the difference; then the source,
// the plan that it was measured with and why it differs, where that is said.
void add_published(ReportText& text, const std::vector<PublishedComparison>& comparisons);

// [{metric, published, simulated, ratio, low, high, as_expected, attention_flops, source, plan,
// why}...] in SI base units; attention_flops, plan and why only where they say something.
std::string published_json(const std::vector<PublishedComparison>& comparisons);

}  // namespace stepsim
