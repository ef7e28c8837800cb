// The head: final norm, unembedding, and the vocabulary-parallel cross entropy of Megatron-LM, of
// which three fp32 values a token are reduced over the tensor group: the largest logit, the sum of
// exponentials (both found in one pass over the logits) and the target's logit.

#pragma once

#include "workload/layer_part.h"

namespace stepsim {

Layer head_layer(const Part& part);

// Of a module of multi-token prediction: its own norm, the model's unembedding, a loss.
Layer prediction_head_layer(const Part& part);

}  // namespace stepsim
