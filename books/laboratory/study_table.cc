#include "books/laboratory/study_table.h"

#include <algorithm>
#include <string>

#include "books/laboratory/study_groups.h"

namespace stepsim {

namespace {

using Group = std::vector<Study> (*)();
constexpr Group kGroups[] = {
    chip_studies,             //
    data_parallel_studies,    //
    decoding_studies,         //
    expert_exchange_studies,  //
    failing_run_studies,      //
    gpu_all_to_all_studies,   //
    gpu_collective_studies,   //
    host_memory_studies,      //
    in_switch_studies,        //
    llama_pod_studies,        //
    mixed_parallel_studies,   //
    model_state_studies,      //
    pipeline_studies,         //
    recipe_studies,           //
    serving_queue_studies,    //
    serving_rule_studies,     //
    serving_slice_studies,    //
    slice_studies,            //
    tensor_parallel_studies,  //
    tpu_collective_studies,   //
    tpu_sharing_studies,      //
    zero_bubble_studies,      //
};

}  // namespace

std::vector<Study> studies() {
  std::vector<Study> all;
  for (const Group group : kGroups) {
    for (const Study& study : group()) all.push_back(study);
  }
  std::ranges::stable_sort(
      all, {}, [](const Study& study) { return std::stoi(std::string(study.id.substr(1))); });
  return all;
}

}  // namespace stepsim
