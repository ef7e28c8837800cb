// stepsim diff: a simulated step beside a real one, op by op.

#pragma once

#include "cli/subcommand.h"

namespace stepsim {

extern const Subcommand kDiffSubcommand;

}  // namespace stepsim
