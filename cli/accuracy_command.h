// `stepsim accuracy FILE.csv...`: predictions against measurements. The library is
// analysis/accuracy/.

#pragma once

#include "cli/subcommand.h"

namespace stepsim {

extern const Subcommand kAccuracySubcommand;

}  // namespace stepsim
