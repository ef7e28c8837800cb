// Recompute trades FLOPs for memory: activations that a backward needs are dropped after the
// forward and made again. (Chen et al., arXiv 1604.06174; Korthikanti et al., arXiv 2205.05198,
// section 5.)
//
//   selective   the attention kernel runs again before its backward. A fused kernel keeps no
//   scores,
//               so with it this saves only the log-sum-exp of each row
//   full        a block keeps its input alone; its whole forward runs again before its backward,
//   its
//               tensor-parallel collectives too
//
// Embedding and head are not recomputed.

#pragma once

#include "schedules/lowering/tensor.h"
#include "workload/layers.h"

namespace stepsim {

// Before lower_tensor().
Layer recompute_selectively(Layer layer);

// After lower_tensor().
LoweredLayer recompute_fully(LoweredLayer layer);

}  // namespace stepsim
