// The branch of a block with experts in place of its MLP, from the norm to the residual addition:
//
//   S norm | T shared gate_up, activation, down | S (gate), router, permute | E gate_up,
//   activation, down | S unpermute, residual
//
// Each token is copied to `per_token` routed experts. A chip's own tokens make tokens x per_token
// copies; the `expert` x `expert_tensor` chips of a group exchange theirs, and what comes to one
// expert rank is spread over its experts as the model's load says. `expert_tensor` chips share each
// expert: all see the same copies and have a part of its features.
//
// Kernels of the experts are grouped matmuls. The weights of the copies are multiplied into the
// activation, so that unpermute is a plain sum and keeps nothing but the permutation.
// Auxiliary losses, and drops below the level of an expert rank's total, are not modelled.

#pragma once

#include <vector>

#include "workload/parts/layer_part.h"

namespace stepsim {

std::vector<LayerOp> expert_branch(const Part& part);

TokenRouting token_routing(const Part& part);

// Returns how many of the `copies` that a group sends each of the `expert` ranks receives: whole
// numbers in proportion to the load of its experts, cut at their capacity. They add up to `copies`
// unless capacity drops some. REQUIRES: ranks divides the routed experts.
std::vector<std::int64_t> copies_by_expert_rank(const ExpertSpec& experts, std::int64_t ranks,
                                                std::int64_t copies);

}  // namespace stepsim
