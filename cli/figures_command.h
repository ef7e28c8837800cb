// `stepsim figures`: the sources' figures, drawn from simulation, as SVG.

#pragma once

#include <string>
#include <vector>

namespace stepsim {

// Writes a file a figure and prints their names. Throws ConfigError for bad input, and where a file
// can't be written.
void run_figures_command(const std::vector<std::string>& arguments);

std::string describe_figures_options();

}  // namespace stepsim
