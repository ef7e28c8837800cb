// The head: final norm, unembedding, and the vocabulary-parallel cross entropy of Megatron-LM. Its
// tensor group reduces three fp32 values a token: the largest logit, the sum of exponentials (one
// pass over the logits finds both) and the target's logit.

#pragma once

#include "workload/parts/layer_part.h"

namespace stepsim {

Layer head_layer(const Part& part);

// Returns the head of a module of multi-token prediction: its own norm, the model's unembedding, a
// loss.
Layer prediction_head_layer(const Part& part);

}  // namespace stepsim
