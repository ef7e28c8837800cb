// `stepsim network CASE.json[.gz]`: simulates raw transfers over explicit links and says when each
// one ends.

#pragma once

#include "cli/subcommand.h"

namespace stepsim {

extern const Subcommand kNetworkSubcommand;

}  // namespace stepsim
