// `stepsim sweep`: runs an experiment at many points, keeps the results in a store, and goes on
// where it was stopped.

#pragma once

#include "cli/subcommand.h"

namespace stepsim {

extern const Subcommand kSweepSubcommand;

}  // namespace stepsim
