// The vision part of a model: patches of pixels to tokens of the text.
//
//   entry      patch_projection (3 colours x frames x patch x patch pixels), patch_positions
//   blocks     as an encoder of text has them: layer norms, biases, an MLP without a gate, rotary
//              positions; the patches of a picture attend to one another
//   projector  projector_norm, then merge x merge patches side by side: a square matrix, an
//              activation, a matrix to the text's width; for each of VisionSpec::projectors
//
// It runs on the first stage, before the embedding, whole on every tensor rank, each of which
// computes the pictures of the group's sequences; context ranks divide the pictures. Not modelled:
// windows of attention within a picture; that results of further projectors are added to the first
// layers' streams; films.

#pragma once

#include "workload/parts/layer_op.h"

namespace stepsim {

// Returns the encoder as a model of text has one. REQUIRES: vision.layers > 0.
ModelSpec vision_encoder(const VisionSpec& vision);

// Returns the layers for shard.pictures (none: for one patch), whatever `shard` divides; empty if
// the model has no vision part.
VisionLayers vision_layers(const ModelSpec& model, const Shard& shard);

// Makes a layer one whose parameters are not trained: it has no backward and keeps nothing.
Layer frozen(Layer layer);
// Makes a layer one that is held and does not run.
Layer without_kernels(Layer layer);

}  // namespace stepsim
