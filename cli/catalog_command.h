// `stepsim catalog [KIND] [NAME]`: lists what is built in, or prints one entry as its file says it.

#pragma once

#include "cli/subcommand.h"

namespace stepsim {

extern const Subcommand kCatalogSubcommand;

}  // namespace stepsim
