// `stepsim catalog [KIND] [NAME]`: what is built in.

#pragma once

#include <string>
#include <vector>

namespace stepsim {

// The text to print: every kind with its names, the names of one kind, or one entry as its file
// says it. Throws ConfigError for a kind or a name that is not there.
std::string catalog_text(const std::vector<std::string>& arguments);

}  // namespace stepsim
