// `stepsim accuracy FILE.csv...`: predictions against measurements. The library is
// measured/.

#pragma once

#include "cli/subcommand.h"

namespace stepsim {

extern const Subcommand kAccuracySubcommand;

}  // namespace stepsim
