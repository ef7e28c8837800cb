// stepsim import: models that were made elsewhere.

#pragma once

#include <string>
#include <vector>

namespace stepsim {

// What `stepsim import ARGUMENTS` prints. Throws ConfigError.
std::string import_text(const std::vector<std::string>& arguments);

}  // namespace stepsim
