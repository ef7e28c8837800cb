// `stepsim figures`: the sources' figures, drawn from simulation, as SVG.

#pragma once

#include "cli/subcommand.h"

namespace stepsim {

extern const Subcommand kFiguresSubcommand;

}  // namespace stepsim
