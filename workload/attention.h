// The attention branch of a block, from its norm to the residual addition:
//
//   S norm | T qkv_projection, (qk_norm), rope, attention, out_projection | S (norm), residual
//
// and with latent attention (latent_attention.h)
//
//   S norm, latent_projection, latent_norm | T query_up, key_value_up, rope, attention,
//   out_projection | S residual
//
// Under context parallelism a chip has the queries of its own tokens and attends to the keys of the
// whole sequence. Here that is one kernel, over all keys and this chip's share of the pairs
// (balanced, as with a zig-zag split). Lowering cuts it into the steps of a ring and adds the
// communication.

#pragma once

#include <vector>

#include "workload/layer_part.h"

namespace stepsim {

// Returns the ops of the branch. Parallel branches leave the addition to the MLP's branch.
std::vector<LayerOp> attention_branch(const Part& part, const BlockKind& kind);

// Returns the shape of the attention kernel on one chip.
AttentionShape attention_shape(const Part& part, const BlockKind& kind);

// Returns the op that computes attention's output from q, k and v: one kernel if
// Shard::fused_attention, otherwise several.
LayerOp attention(const Part& part, const AttentionShape& shape);

}  // namespace stepsim
