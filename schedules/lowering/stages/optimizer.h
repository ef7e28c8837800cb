// The optimizer step, the norm of all gradients that clipping needs before it, and the model state
// that a rank holds: weights, gradients and optimizer state, each divided over the replicas or not
// (ZeRO, arXiv 1910.02054, figure 1).

#pragma once

#include <vector>

#include "schedules/lowering/stages/stage.h"

namespace stepsim {

// Books weights, gradients, optimizer state and fixed overhead from the start of the run to its
// end.
void hold_model_state(Stage& stage, Bytes fixed_memory);

// Adds the norm: the sum of squares of this rank's gradients, summed over all ranks whose gradients
// differ (with post-validation over the ranks of its stage). Returns the ops that the optimizer
// then waits for.
std::vector<Dependency> add_gradient_norm(Stage& stage, std::vector<Dependency> dependencies);

// Adds the optimizer's step: Muon (muon.h), or Adam on this rank's share of the parameters. It
// reads gradient and state and writes state and the weight in its own type, with 15 FLOPs per
// parameter.
OpRef add_optimizer(Stage& stage, std::vector<Dependency> dependencies);

// Returns its kernel, and adds any kernels as the optimizer's op.
Kernel adam_kernel(const OptimizerUpdate& update, DataType weights, std::int64_t parameters);
OpRef add_update(Stage& stage, const std::vector<Kernel>& kernels,
                 std::vector<Dependency> dependencies);

// The same step for a given number of parameters.
OpRef add_adam(Stage& stage, std::int64_t parameters, std::vector<Dependency> dependencies);

}  // namespace stepsim
