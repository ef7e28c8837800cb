// `stepsim calibrate FILE...`: fits constants of chips and libraries to measurements. The library
// is calibration/.

#pragma once

#include "cli/subcommand.h"

namespace stepsim {

extern const Subcommand kCalibrateSubcommand;

}  // namespace stepsim
