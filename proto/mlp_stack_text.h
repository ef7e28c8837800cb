// Reads the two-matmul model of the roofline chapters from one word of the command line: --model
// mlp-stack:D=8192,F=32768,layers=32 (workload/mlp_stack.h).

#pragma once

#include <string_view>

#include "proto/experiment.pb.h"
#include "proto/messages/problem_list.h"

namespace stepsim {

bool is_mlp_stack_text(std::string_view flag);  // whether it begins with "mlp-stack"

// REQUIRES: is_mlp_stack_text(flag).
void read_mlp_stack_text(std::string_view flag, file::Model& model, ProblemList& problems);

}  // namespace stepsim
