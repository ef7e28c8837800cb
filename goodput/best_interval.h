// The best interval between checkpoints, exactly, for failures at a constant rate (formula K1).

#pragma once

#include "goodput/run_setup.h"

namespace stepsim {

// Returns the work between checkpoints that costs least: M (1 + W0(-e^-(1 + C / M))), the same on
// every machine. 0 if they cost nothing. REQUIRES: stall >= 0, mean > 0.
Ticks best_interval(Ticks stall, Ticks mean);

}  // namespace stepsim
