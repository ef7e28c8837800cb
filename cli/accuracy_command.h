// `stepsim accuracy FILE.csv...`: predicted against measured. The library is analysis/accuracy/.

#pragma once

#include <string>
#include <vector>

namespace stepsim {

// Prints the summary by source, or the whole as JSON. Throws ConfigError.
void run_accuracy_command(const std::vector<std::string>& arguments);

std::string describe_accuracy_options();

}  // namespace stepsim
