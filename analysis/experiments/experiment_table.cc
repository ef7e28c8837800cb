#include "analysis/experiments/experiment_table.h"

#include <algorithm>
#include <string>

#include "analysis/experiments/experiment_groups.h"

namespace stepsim {

std::vector<FormulaExperiment> formula_experiments() {
  std::vector<FormulaExperiment> all;
  for (const auto group : {data_parallel_experiments, model_state_experiments,
                           tensor_parallel_experiments, tpu_collective_experiments}) {
    for (const FormulaExperiment& experiment : group()) all.push_back(experiment);
  }
  std::ranges::stable_sort(all, {}, [](const FormulaExperiment& experiment) {
    return std::stoi(std::string(experiment.id.substr(1)));
  });
  return all;
}

}  // namespace stepsim
