// `stepsim validate [ID...]`: formulas against simulation.

#pragma once

#include <string>
#include <vector>

namespace stepsim {

// The options, with what they mean, for the help.
std::string describe_validate_options();

// Runs what was asked for and prints it. True if every row is as expected. Throws ConfigError with
// every problem of the arguments.
bool run_validate_command(const std::vector<std::string>& arguments);

}  // namespace stepsim
