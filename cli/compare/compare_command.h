// `stepsim compare`: what two or more runs have different, in and out.

#pragma once

#include "cli/subcommand.h"

namespace stepsim {

extern const Subcommand kCompareSubcommand;

}  // namespace stepsim
