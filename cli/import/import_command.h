// stepsim import: reads files of other software.

#pragma once

#include "cli/subcommand.h"

namespace stepsim {

extern const Subcommand kImportSubcommand;

}  // namespace stepsim
