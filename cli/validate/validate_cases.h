// `stepsim validate --cases`: checks the figures that the books work out against the formula table.

#pragma once

#include <string>
#include <vector>

#include "cli/subcommand.h"

namespace stepsim {

// Checks all cases, or those of the given ids, formulas ("E7") or groups ("E"). Prints them to
// standard output, or as JSON to `json` ("-": standard output). Returns kNo unless every one is
// right. Throws ConfigError for words that are none of these.
ExitStatus validate_cases(const std::vector<std::string>& words, const std::string& json);

// What it writes.
const AnyResultTable& worked_cases_table();

}  // namespace stepsim
