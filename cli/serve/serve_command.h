// `stepsim serve`: requests on replicas of a model, and files of scheduler cases. The library is
// serving/.

#pragma once

#include "cli/subcommand.h"

namespace stepsim {

extern const Subcommand kServeSubcommand;

}  // namespace stepsim
