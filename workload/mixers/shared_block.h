// A block of attention and MLP whose weights several layers share (SharedSpec), in a layer Z before
// its state:
//
//   S attention_norm (of stream and embedding, side by side), attention_adapter_down_projection |
//   T attention_adapter_up_projection, qkv, attention, out_projection |
//   S mlp_norm, adapter_down_projection | T adapter_up_projection, gate_up, activation, down |
//   S shared_projection, shared_residual | and then the state's branch
//
// The block has no additions of its own: its result is added to the stream that the state's norm
// reads. The first layer with a block owns its weights; the others have them as
// OpParameters::borrowed, and run the same kernels. Norm of both inputs: it keeps them side by
// side, as their concatenation is made anew in each such layer. The adapters and shared_projection,
// a square matrix that every tensor rank has whole, are each layer's own.

#pragma once

#include <vector>

#include "workload/parts/layer_part.h"

namespace stepsim {

// Returns the ops up to shared_residual. REQUIRES: kind.mixer is kShared.
std::vector<LayerOp> shared_block(const Part& part, const BlockKind& kind);

}  // namespace stepsim
