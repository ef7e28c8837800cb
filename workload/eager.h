// Elementwise work as an eager framework runs it: op by op, where a compiler or a library has one
// kernel. Each pass reads and writes memory, in fp32 where the reference code casts.
//
// The passes are those of PyTorch without torch.compile for the reference code of Llama
// (meta-llama/llama, model.py; the same in torchtitan): RMS norm as cast, square, mean, scale, cast
// and weight; rotation as complex numbers in fp32; SwiGLU as SiLU and product. Layer norm, GELU,
// softmax and additions are one kernel there too.
//
// Not modelled: what eager kernels keep for the backward in addition.

#pragma once

#include "workload/layers.h"

namespace stepsim {

ModelLayers with_eager_kernels(ModelLayers layers, const ModelSpec& model, DataType activations);

}  // namespace stepsim
