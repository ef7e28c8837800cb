// The MLP branch of a dense block, from its norm to the residual addition:
//
//   S norm | T gate_up_projection (or up), activation, down_projection | S (norm), residual
//
// If branches are parallel it follows the attention's in the same T region, reads the same gathered
// input and adds to the same partial sums. Its addition joins both to the stream.

#pragma once

#include <string_view>
#include <vector>

#include "workload/parts/layer_part.h"

namespace stepsim {

std::vector<LayerOp> mlp_branch(const Part& part);

// silu(gate) x up, or gelu(up), of [rows, width]: region T or E.
LayerOp mlp_activation(const Part& part, OpName name, Region region, std::int64_t rows,
                       std::int64_t width);

}  // namespace stepsim
