// stepsim formula: lists, explains, evaluates and solves the closed forms of analysis/formulas.

#pragma once

#include <string>
#include <vector>

namespace stepsim {

std::string describe_formula_options();

// Throws ConfigError with every problem of the arguments at once.
void run_formula_command(const std::vector<std::string>& arguments);

}  // namespace stepsim
