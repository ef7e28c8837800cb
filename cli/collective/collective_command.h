// `stepsim collective OP --cluster C --bytes N`: one collective on an idle cluster, as a run of a
// graph of one op a rank.

#pragma once

#include <string>
#include <vector>

namespace stepsim {

// Runs it and writes what was asked for, in files and to standard output. Throws ConfigError with
// everything that is wrong with options, cluster, ranks and output file at once.
void run_collective_command(const std::vector<std::string>& arguments);

}  // namespace stepsim
