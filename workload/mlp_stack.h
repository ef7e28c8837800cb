// mlp_stack is the model of the roofline chapters ("How to Scale Your Model"): layers of two
// matmuls and nothing else. No attention, norm, activation function, embedding or loss, so that
// what a simulated step does can be held against a closed form term by term.
//
//   [tokens, D] @ [D, F] -> [tokens, F] @ [F, D] -> the next layer        D = hidden
//                                                                         F = intermediate
//
//   forward   4 tokens D F FLOPs a layer; backward twice that; 2 D F parameters
//   kept      the layer's input and what the first matmul made: tokens (D + F) values
//
// Tensor parallelism divides F. The input is gathered before the first matmul (it is whole without
// sequence parallelism), and the results of the second are partial sums. Weight
// gradients are written once, in the type of the weights: there is no accumulator, so several
// micro-batches cost what as many separate ones cost.

#pragma once

#include "workload/layers.h"
#include "workload/model/model_spec.h"

namespace stepsim {

// Embedding and head have no ops. REQUIRES: check_mlp_stack(model) is empty; shard.tensor divides
// intermediate and, with sequence parallelism, the tokens.
ModelLayers build_mlp_stack(const ModelSpec& model, const Shard& shard);

}  // namespace stepsim
