// The experiments, a file a group; not included outside analysis/experiments.

#pragma once

#include <vector>

#include "analysis/experiments/experiment.h"

namespace stepsim {

std::vector<FormulaExperiment> tpu_collective_experiments();  // tpu_collectives.cc

}  // namespace stepsim
