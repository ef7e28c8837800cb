// What an experiment says about serving it, as options of `stepsim serve`.

#pragma once

#include <string>
#include <vector>

namespace stepsim {

// Returns the arguments with the options that the experiment among them has for serving it, where
// they are not given themselves. Without an experiment: the arguments. Throws ConfigError.
std::vector<std::string> with_served_load(const std::vector<std::string>& arguments);

}  // namespace stepsim
