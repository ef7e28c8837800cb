// Elementwise work as an eager framework runs it: op by op, where a compiler or a library has one
// kernel. Each pass reads and writes memory, in fp32 where the reference code casts.
//
// The passes are those of PyTorch without torch.compile for the reference code of Llama
// (meta-llama/llama, model.py; the same in torchtitan): RMS norm as cast, square, mean, scale, cast
// and weight; rotation as complex numbers in fp32; SwiGLU as SiLU and product. Layer norm, GELU,
// softmax and additions are one kernel there too.
//
// They also keep more for the backward: an RMS norm its values in fp32 and rounded (6 bytes a value
// in place of 2), SwiGLU the result of SiLU. Adapters and states keep what their one kernel keeps.
//
// with_input_copies() is another custom, of PaddlePaddle: matmuls that tensor ranks divide by
// columns copy their input, each for itself, and keep the copy (c_identity in
// python/paddle/distributed/fleet/layers/mpu/mp_ops.py).

#pragma once

#include <cstdint>

#include "workload/parts/layer_op.h"

namespace stepsim {

enum class EagerKernels : std::uint8_t {
  kAll,
  kGate,  // the activation function of a gated MLP and its product alone
};
ModelLayers with_eager_kernels(ModelLayers layers, const ModelSpec& model, DataType activations,
                               EagerKernels which = EagerKernels::kAll);

ModelLayers with_input_copies(ModelLayers layers, DataType activations);

}  // namespace stepsim
