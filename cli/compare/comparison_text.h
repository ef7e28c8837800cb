// A comparison as a report for the terminal and as JSON.

#pragma once

#include <string>
#include <vector>

#include "cli/compare/comparison.h"

namespace stepsim {

std::string comparison_report_of(const std::vector<ComparedRun>& runs,
                                 const RunComparison& comparison, bool color);

// {runs [{name, source, step_time_s}...], inputs [{path, values}...], lines [{section, name, unit,
// values, differences}...], explained [{run, step_difference_s, parts [{part, difference_s}...]}]}.
// Differences are from the first run; times are exact decimals.
std::string comparison_json_of(const std::vector<ComparedRun>& runs,
                               const RunComparison& comparison);

}  // namespace stepsim
