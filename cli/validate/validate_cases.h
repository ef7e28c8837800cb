// `stepsim validate --cases`: checks the figures that the books work out against the formula table.

#pragma once

#include <string>
#include <vector>

namespace stepsim {

// Checks all cases, or those of the given ids, formulas ("E7") or groups ("E"). Prints them to
// standard output, or as JSON to `json` ("-": standard output). Returns whether every one is right.
// Throws ConfigError for words that are none of these.
bool validate_cases(const std::vector<std::string>& words, const std::string& json);

}  // namespace stepsim
