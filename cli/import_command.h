// stepsim import: models that were made elsewhere.

#pragma once

#include "cli/subcommand.h"

namespace stepsim {

extern const Subcommand kImportSubcommand;

}  // namespace stepsim
