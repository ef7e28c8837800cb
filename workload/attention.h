// The attention branch of a block, from its norm to the residual addition:
//
//   S norm | T qkv_projection, (qk_norm), rope, attention, out_projection | S (norm), residual
//
// and with latent attention (latent_attention.h)
//
//   S norm, latent_projection, latent_norm | T query_up, key_value_up, rope, attention,
//   out_projection | S residual
//
// With context parallelism a chip has the queries of its own tokens and attends to the keys of the
// whole sequence: one kernel here, over all keys and this chip's share of the pairs (balanced, as
// with a zig-zag split). Lowering splits it into the steps of a ring and adds the communication.

#pragma once

#include <vector>

#include "workload/layer_part.h"

namespace stepsim {

// Without the addition where branches are parallel: the MLP's joins both.
std::vector<LayerOp> attention_branch(const Part& part, const BlockKind& kind);

// What the attention kernel of one chip sees.
AttentionShape attention_shape(const Part& part, const BlockKind& kind);

// From q, k and v to the output, in one fused kernel or not (Shard::fused_attention).
LayerOp attention(const Part& part, const AttentionShape& shape);

}  // namespace stepsim
