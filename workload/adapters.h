// Low-rank adapters (LoRA, Hu et al., arXiv 2106.09685): the model is frozen, and beside each
// projection of its blocks, x W, stands x A B with A of [in, rank] and B of [rank, out], which are
// all that is trained.
//
// A frozen matrix has no weight gradient, no gradient in memory and no state of the optimizer. Its
// input gradient stays. Frozen are also norms, biases, embedding, head, router and routed experts,
// which get no adapters.
//
// Not modelled: messages of the adapters between tensor ranks (rank values a token), their dropout,
// and activations that software may drop because nothing frozen reads them in the backward.

#pragma once

#include <cstdint>

#include "workload/layers.h"

namespace stepsim {

// REQUIRES: rank >= 1; no prediction modules.
ModelLayers with_adapters(ModelLayers layers, std::int64_t rank, const DataTypes& types);

// Returns the parameters of all adapters of a model that is not divided: rank x (in + out) for each
// projection. REQUIRES: rank >= 1; model.kind is a transformer.
std::int64_t adapter_parameter_count(const ModelSpec& model, std::int64_t rank);

}  // namespace stepsim
