// Projections of multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1), as they
// are trained: keys and values of every head are made from the latent vector (nothing is absorbed).
//
// The projections down are whole on every tensor rank and multiply its own tokens, so what crosses
// into the T region is the latent vectors, which are narrower than the stream (Megatron-Core).

#pragma once

#include <vector>

#include "workload/layer_part.h"

namespace stepsim {

// What follows the norm, up to the attention kernel. REQUIRES: the model has latent attention.
std::vector<LayerOp> latent_projections(const Part& part);

}  // namespace stepsim
