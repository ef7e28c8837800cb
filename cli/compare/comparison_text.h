// A comparison as a report for the terminal.

#pragma once

#include <string>
#include <vector>

#include "cli/compare/comparison.h"

namespace stepsim {

std::string comparison_report_of(const std::vector<ComparedRun>& runs,
                                 const RunComparison& comparison, bool color);

}  // namespace stepsim
