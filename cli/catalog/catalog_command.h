// `stepsim catalog [KIND] [NAME]`: lists the built-in entries, or prints one entry's file.

#pragma once

#include "cli/subcommand.h"

namespace stepsim {

extern const Subcommand kCatalogSubcommand;

}  // namespace stepsim
