// stepsim import: reads models from other software.

#pragma once

#include "cli/subcommand.h"

namespace stepsim {

extern const Subcommand kImportSubcommand;

}  // namespace stepsim
