// What a stack of two matmuls a layer (workload/mlp_stack.h) needs to be given, and its size.

#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/error.h"
#include "workload/model/model_spec.h"

namespace stepsim {

// Empty when layers, hidden and intermediate are positive and nothing else is given.
// REQUIRES: model.kind == ModelKind::kMlpStack, as for all below.
std::vector<Problem> check_mlp_stack(const ModelSpec& model);

std::int64_t mlp_stack_parameters(const ModelSpec& model);

}  // namespace stepsim
