// `stepsim view`: the page of a saved result.

#pragma once

#include "cli/subcommand.h"

namespace stepsim {

extern const Subcommand kViewSubcommand;

}  // namespace stepsim
