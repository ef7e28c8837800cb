// The optimizer step, the norm of all gradients that clipping needs before it, and what model state
// a rank holds (ZeRO, arXiv 1910.02054, figure 1): weights, gradients and optimizer state, each
// divided by the replicas or not.

#pragma once

#include <vector>

#include "schedules/lowering/stage.h"

namespace stepsim {

// Weights, gradients, optimizer state and fixed overhead, from the start of the run to its end.
void hold_model_state(Stage& stage, Bytes fixed_memory);

// The sum of squares of this rank's gradients, summed over all ranks whose gradients differ (with
// post-validation over the ranks of its stage). Returns the ops that the optimizer then waits for.
std::vector<Dependency> add_gradient_norm(Stage& stage, std::vector<Dependency> dependencies);

// Adam on this rank's part of the parameters: reads gradient and state, writes state and the weight
// in its own type; 15 FLOPs a parameter.
OpRef add_optimizer(Stage& stage, std::vector<Dependency> dependencies);

// The same step for so many parameters.
OpRef add_adam(Stage& stage, std::int64_t parameters, std::vector<Dependency> dependencies);

}  // namespace stepsim
