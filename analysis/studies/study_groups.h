// The experiments, a file a group (chip.cc has chip_experiments()); not included outside
// analysis/experiments.

#pragma once

#include <vector>

#include "analysis/studies/study.h"

namespace stepsim {

std::vector<FormulaExperiment> chip_experiments();
std::vector<FormulaExperiment> data_parallel_experiments();
std::vector<FormulaExperiment> decoding_experiments();
std::vector<FormulaExperiment> expert_exchange_experiments();
std::vector<FormulaExperiment> gpu_all_to_all_experiments();
std::vector<FormulaExperiment> gpu_collective_experiments();
std::vector<FormulaExperiment> in_switch_experiments();
std::vector<FormulaExperiment> llama_pod_experiments();
std::vector<FormulaExperiment> mixed_parallel_experiments();
std::vector<FormulaExperiment> model_state_experiments();
std::vector<FormulaExperiment> pipeline_experiments();
std::vector<FormulaExperiment> recipe_experiments();  // recipes.cc
std::vector<FormulaExperiment> serving_queue_experiments();
std::vector<FormulaExperiment> slice_experiments();  // slices.cc
std::vector<FormulaExperiment> tensor_parallel_experiments();
std::vector<FormulaExperiment> tpu_collective_experiments();
std::vector<FormulaExperiment> tpu_sharing_experiments();
std::vector<FormulaExperiment> zero_bubble_experiments();

}  // namespace stepsim
