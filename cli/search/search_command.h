// `stepsim search`: the best plans of a model on a cluster. The answer is no if none fits in
// memory.

#pragma once

#include "cli/subcommand.h"

namespace stepsim {

extern const Subcommand kSearchSubcommand;

}  // namespace stepsim
