// Makes the layers of a model (workload/parts/layer_op.h), as one chip holds them.

#pragma once

#include "workload/parts/layer_op.h"

namespace stepsim {

// Returns what goes over the boundary of two pipeline stages before layer `layer`, on one chip,
// besides the stream: keys and values, an encoder's result, choices of tokens and vectors of layers
// that layers behind it read and layers before it have made. Both as tensor ranks have them.
Bytes handed_on(const ModelSpec& model, const ModelLayers& layers, const Shard& shard,
                std::int64_t layer);

// REQUIRES: check(model) is empty; shard.tensor divides heads and intermediate, and divides
// kv_heads or is divided by them; context divides sequence_length; with sequence parallelism tensor
// divides sequences * sequence_length / context; experts.parts divides the routed experts,
// experts.tensor their width, tensor that of the shared ones; a model with experts is sequence
// parallel if tensor > 1 (otherwise tensor ranks would send the same tokens). With
// tensor_width > 1: a part of tensor, which divides hidden and kv_heads; sequence parallel; neither
// experts, latent attention nor prediction.
ModelLayers build_layers(const ModelSpec& model, const Shard& shard);

}  // namespace stepsim
