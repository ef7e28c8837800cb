// `stepsim collective OP --cluster C --bytes N`: one collective on an idle cluster, as a run of a
// graph of one op a rank.

#pragma once

#include "cli/subcommand.h"

namespace stepsim {

extern const Subcommand kCollectiveSubcommand;

}  // namespace stepsim
