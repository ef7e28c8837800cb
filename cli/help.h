// `stepsim help [SUBCOMMAND]`.

#pragma once

#include <string>
#include <vector>

namespace stepsim {

// Throws ConfigError for a subcommand that is not there.
std::string help_text(const std::vector<std::string>& arguments);

// Throws ConfigError: no such subcommand.
[[noreturn]] void refuse_subcommand(const std::string& name);

}  // namespace stepsim
