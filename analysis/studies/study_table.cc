#include "analysis/studies/study_table.h"

#include <algorithm>
#include <string>

#include "analysis/studies/study_groups.h"

namespace stepsim {

namespace {

using Group = std::vector<FormulaExperiment> (*)();
constexpr Group kGroups[] = {
    chip_experiments,             //
    data_parallel_experiments,    //
    decoding_experiments,         //
    expert_exchange_experiments,  //
    gpu_all_to_all_experiments,   //
    gpu_collective_experiments,   //
    in_switch_experiments,        //
    llama_pod_experiments,        //
    mixed_parallel_experiments,   //
    model_state_experiments,      //
    pipeline_experiments,         //
    recipe_experiments,           //
    serving_queue_experiments,    //
    slice_experiments,            //
    tensor_parallel_experiments,  //
    tpu_collective_experiments,   //
    tpu_sharing_experiments,      //
    zero_bubble_experiments,      //
};

}  // namespace

std::vector<FormulaExperiment> formula_experiments() {
  std::vector<FormulaExperiment> all;
  for (const Group group : kGroups) {
    for (const FormulaExperiment& experiment : group()) all.push_back(experiment);
  }
  std::ranges::stable_sort(all, {}, [](const FormulaExperiment& experiment) {
    return std::stoi(std::string(experiment.id.substr(1)));
  });
  return all;
}

}  // namespace stepsim
