// Gradients that are summed up by kernels of their own, as DeepSpeed's BF16_Optimizer does
// (microsoft/DeepSpeed, deepspeed/runtime/bf16_optimizer.py, update_hp_grads): the matmuls of a
// micro-batch write weight gradients in 16 bits, which are then widened and added to fp32 sums: 2 +
// 4 and 8 + 4 bytes a parameter, where a matmul that accumulates reads and writes 8.
//
// Not modelled: the fp32 copy of one parameter's gradient on its way into the sum.

#pragma once

#include "workload/parts/layer_op.h"

namespace stepsim {

// REQUIRES: the gradients of `layers` are accumulated in fp32.
ModelLayers with_separate_accumulation(ModelLayers layers);

}  // namespace stepsim
