// stepsim goodput: a whole training run with failures.

#pragma once

#include "cli/subcommand.h"

namespace stepsim {

extern const Subcommand kGoodputSubcommand;

}  // namespace stepsim
