// `stepsim network CASE.json[.gz]`: raw transfers over explicit links, and when each one ends.

#pragma once

#include "cli/subcommand.h"

namespace stepsim {

extern const Subcommand kNetworkSubcommand;

}  // namespace stepsim
