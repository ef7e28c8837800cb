// `stepsim collective OP --cluster C --bytes N`: runs one collective on an idle cluster, as a graph
// with one op per rank.

#pragma once

#include "cli/subcommand.h"

namespace stepsim {

extern const Subcommand kCollectiveSubcommand;

}  // namespace stepsim
