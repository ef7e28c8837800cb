// The kernels that a software runs a layer with: a part of what layers are built from.
// schedules/plan/keys/software_fields.cc says what each key does and when to change it.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/chips/chip_spec.h"

namespace stepsim {

// KernelChoices are the kernels of mixers, MLPs and experts.
struct KernelChoices {
  // One kernel from q, k and v to the output, or a matmul, softmax, (dropout) and a matmul, which
  // keep the scores: 2 bytes a pair and head, 5 with dropout.
  bool fused_attention = true;
  std::optional<AttentionLibrary> attention_library{};  // unset: the chip's usual one
  // Elementwise kernels that read the same are one; else each result has a kernel of its own, as in
  // DeepSeek-V3's training (layer_part.h).
  bool fused_elementwise = true;
  bool eager_elementwise = false;
  bool eager_gate = false;  // the activation of a gated MLP and its product alone are so
  // The matmuls of all experts are one kernel; else each expert has its own, one after the other,
  // and adds to its accumulators when it has multiplied (Transformer Engine: GroupedLinear).
  bool grouped_experts = true;
  // Copies arrive ordered by their sender. A pass orders them by expert, another one their results
  // (Megatron-Core: sort_chunks_by_idxs). Else they arrive as the matmuls need them.
  bool sort_copies = false;
  // Products with masks copy tokens into places of experts, and add places up; all places of a
  // capacity are computed (GShard; MaxText: sparse_matmul = False). Places that stay empty are not
  // sent to other chips.
  bool mask_dispatch = false;
  std::int64_t sm_margin = 0;  // units of the chip that kernels leave to communication
};

// The kernels of the cross entropy, from the logits to their gradient. The comments give the bytes
// that lie in memory meanwhile for each logit; t is the size of the activations' type.
enum class LossKernels : std::uint8_t {
  kFused,     // fp32 in registers only. Keeps the logits, which their gradient overwrites: t
  kInPlace,   // Megatron-LM: an fp32 copy, in which softmax and gradient are made in place; rounded
              // at the end. Keeps 4; the copy begins and ends beside t
  kSeparate,  // PyTorch: an fp32 copy, its log-softmax (kept, 4), and in the backward pass the
              // gradients of both; over a tensor group the exponentials too. PyTorch keeps the
              // block of the logits (t) reserved meanwhile, which fits nothing of 4
  kChunked,  // the head and its loss for some tokens at a time, with their gradients (Liger's fused
             // linear cross entropy): no logits. Keeps the gradient of the head's input. Its
             // matmuls for the gradients are timed in the backward, though they run in the forward
};
inline constexpr std::size_t kLossKernels = 4;
std::string_view name_of(LossKernels kernels);  // "in_place"
inline bool has_fp32_copy(LossKernels kernels) {
  return kernels == LossKernels::kInPlace || kernels == LossKernels::kSeparate;
}

// LossChoices says how the head makes its loss.
struct LossChoices {
  LossKernels kernels = LossKernels::kFused;
  bool hold_logits = false;        // the fp32 copy stays too, until the loss has run backward
  std::int64_t metric_losses = 0;  // of the head alone: figures that are logged, without gradients
};

}  // namespace stepsim
