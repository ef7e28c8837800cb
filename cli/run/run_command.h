// stepsim run: training steps of an experiment.

#pragma once

#include <string>
#include <vector>

namespace stepsim {

// Reads what to run, simulates it, writes the table and the files that were asked for. False: the
// plan doesn't fit in memory and --require-fit was given. Throws ConfigError with every problem of
// the input, and SimulationInterrupted.
bool run_run_command(const std::vector<std::string>& arguments);

}  // namespace stepsim
