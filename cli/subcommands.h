// The table of all subcommands.

#pragma once

#include <span>
#include <string>

#include "cli/subcommand.h"

namespace stepsim {

// In the order of the overview.
std::span<const Subcommand* const> subcommands();

// Throws ConfigError with a suggestion if there is no subcommand of that name.
const Subcommand& find_subcommand(const std::string& name);

}  // namespace stepsim
