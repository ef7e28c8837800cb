// The text that `stepsim run --explain` prints below the table of the run, and what the JSON has of
// it under "explain".

#pragma once

#include <string>

#include "experiment/explained/explain.h"
#include "traces/results/result_table.h"

namespace stepsim {

std::string explain_report(const Explanation& explanation, bool color);

const ResultTable<Explanation>& explanation_results();

}  // namespace stepsim
