// `stepsim serve-search`: the layout of a model that serves most requests a chip within an
// objective. The answer is no if none does.

#pragma once

#include "cli/subcommand.h"

namespace stepsim {

extern const Subcommand kServeSearchSubcommand;

}  // namespace stepsim
