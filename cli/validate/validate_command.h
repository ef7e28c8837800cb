// `stepsim validate [ID...]`: formulas against simulation.

#pragma once

#include "cli/subcommand.h"

namespace stepsim {

extern const Subcommand kValidateSubcommand;

}  // namespace stepsim
