// `stepsim help [SUBCOMMAND|TOPIC]`. All texts on subcommands come from their rows.

#pragma once

#include <string>

#include "cli/subcommand.h"

namespace stepsim {

extern const Subcommand kHelpSubcommand;

// The text of `stepsim` without arguments: a line for every subcommand and every topic.
std::string overview();

// The description of a subcommand and its options.
std::string help_text(const Subcommand& subcommand);

}  // namespace stepsim
