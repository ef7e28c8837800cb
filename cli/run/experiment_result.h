// An experiment, run as `stepsim run` runs it, and its result as JSON: what sweeps and comparisons
// are made of.

#pragma once

#include <string>
#include <vector>

#include "experiment/uncertainty.h"
#include "proto/load_experiment.h"

namespace stepsim {

// Returns what `stepsim run --json` writes for the first of its network models. Several threads can
// call it. Throws what simulate() throws.
std::string experiment_result(LoadedExperiment loaded, const std::vector<IntervalEntry>& intervals);

}  // namespace stepsim
