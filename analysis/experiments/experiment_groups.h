// The experiments, a file a group; not included outside analysis/experiments.

#pragma once

#include <vector>

#include "analysis/experiments/experiment.h"

namespace stepsim {

std::vector<FormulaExperiment> data_parallel_experiments();    // data_parallel.cc
std::vector<FormulaExperiment> model_state_experiments();      // model_state.cc
std::vector<FormulaExperiment> tensor_parallel_experiments();  // tensor_parallel.cc
std::vector<FormulaExperiment> tpu_collective_experiments();   // tpu_collectives.cc

}  // namespace stepsim
