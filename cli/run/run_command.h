// `stepsim run`: simulates training steps of an experiment, and writes the table and the files that
// were asked for. The answer is no if the plan does not fit in memory and --require-fit was given.

#pragma once

#include "cli/subcommand.h"

namespace stepsim {

extern const Subcommand kRunSubcommand;

}  // namespace stepsim
