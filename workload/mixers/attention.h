// The attention of a block, from its norm's output to its result:
//
//   T qkv_projection, (qk_norm), rope, attention, (attention_gate), out_projection
//
// and with latent attention (latent_attention.h)
//
//   S latent_projection, latent_norm | T query_up, key_value_up, rope, attention, out_projection
//
// Attention to compressed keys is in compressed_attention.h.
//
// A layer that shares the keys and values of an earlier one projects queries only. Their gradients
// are added up where they were made: one more pass over them in the backward. Not modelled: the two
// layers on different stages of a pipeline, and full recompute, under which their keys stay in
// memory.
//
// Under context parallelism a chip has the queries of its own tokens and attends to the keys of the
// whole sequence. Here that is one kernel, over all keys and this chip's share of the pairs
// (balanced, as with a zig-zag split). Lowering cuts it into the steps of a ring and adds the
// communication.

#pragma once

#include <vector>

#include "workload/parts/layer_part.h"

namespace stepsim {

// Returns the ops. REQUIRES: kind.attends(), and `part` is of as_in(model, kind).
std::vector<LayerOp> attention_ops(const Part& part, const BlockKind& kind);

// Returns the shape of the attention kernel on one chip.
AttentionShape attention_shape(const Part& part, const BlockKind& kind);

// Returns the op that computes attention's output from q, k and v: one kernel if
// KernelChoices::fused_attention, otherwise several.
LayerOp attention(const Part& part, const AttentionShape& shape);

}  // namespace stepsim
