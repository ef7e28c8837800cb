// The studies. Each group has a file: chip.cc has chip_studies(). Only books/studies includes
// this header.

#pragma once

#include <vector>

#include "books/laboratory/study.h"

namespace stepsim {

std::vector<Study> chip_studies();
std::vector<Study> data_parallel_studies();
std::vector<Study> decoding_studies();
std::vector<Study> expert_exchange_studies();
std::vector<Study> failing_run_studies();  // failing_runs.cc
std::vector<Study> gpu_all_to_all_studies();
std::vector<Study> gpu_collective_studies();
std::vector<Study> host_memory_studies();
std::vector<Study> in_switch_studies();
std::vector<Study> llama_pod_studies();
std::vector<Study> mixed_parallel_studies();
std::vector<Study> model_state_studies();
std::vector<Study> pipeline_studies();
std::vector<Study> recipe_studies();  // recipes.cc
std::vector<Study> serving_queue_studies();
std::vector<Study> serving_rule_studies();
std::vector<Study> serving_slice_studies();
std::vector<Study> slice_studies();  // slices.cc
std::vector<Study> tensor_parallel_studies();
std::vector<Study> tpu_collective_studies();
std::vector<Study> tpu_sharing_studies();
std::vector<Study> zero_bubble_studies();

}  // namespace stepsim
