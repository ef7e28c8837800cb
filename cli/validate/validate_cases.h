// `stepsim validate --cases`: the figures that the books work out, through the formula table.

#pragma once

#include <string>
#include <vector>

namespace stepsim {

// All cases, or those of the given ids, formulas ("E7") or groups ("E"). Prints them to standard
// output, or as JSON to `json` ("-": standard output). True if every one is right. Throws
// ConfigError for words that are none of these.
bool validate_cases(const std::vector<std::string>& words, const std::string& json);

}  // namespace stepsim
