// Projections of multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1), as in
// training: keys and values of every head are made from the latent vector, and no projection is
// absorbed into another.
//
// Every tensor rank holds the whole down projections and multiplies its own tokens. So only the
// latent vectors, which are narrower than the stream, cross into the T region (Megatron-Core).

#pragma once

#include <vector>

#include "workload/parts/layer_part.h"

namespace stepsim {

// Returns the ops between the norm and the attention kernel. REQUIRES: the model has latent
// attention.
std::vector<LayerOp> latent_projections(const Part& part);

}  // namespace stepsim
