// `stepsim network CASE.json[.gz]`: raw transfers over explicit links, and when each one ends.

#pragma once

#include <string>
#include <vector>

namespace stepsim {

// Runs the case and writes what was asked for, in files and to standard output. Throws ConfigError
// with everything that is wrong with options, case and output file at once.
void run_network_command(const std::vector<std::string>& arguments);

// The options as a person reads them, for `stepsim help network`.
std::string describe_network_options();

}  // namespace stepsim
