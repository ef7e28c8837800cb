// Layers are what one chip runs for a micro-batch: every kernel of forward and backward with its
// FLOPs and bytes, the parameters it holds and the activations it keeps. The kernels are those of
// the part of the model that is the chip's own under tensor and sequence parallelism (Shard);
// communication is not in here: schedules/lowering puts it where the region changes.
//
//   embedding --> block x layers --> head (final norm, unembedding, loss)
//
// A block, with the region of each op (S = tokens divided, T = features divided):
//
//   S norm | T qkv, rope, attention, out_projection | S add, norm | T gate_up, act, down | S add
//
// Sources: Megatron-LM (arXiv 1909.08053) for column and row splits, Korthikanti et al. (arXiv
// 2205.05198) for sequence parallelism and kept activations, FlashAttention for the fused
// attention kernel (keeps its inputs, output and one fp32 log-sum-exp a row; the backward kernel
// recomputes the scores: 2.5 x the forward's FLOPs).
// A vocabulary that `tensor` does not divide is padded to the next multiple of it.
// Not modelled: dropout (no mask is kept).

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.h"
#include "sim/chips/kernel.h"
#include "workload/model_spec.h"

namespace stepsim {

// The part of a micro-batch's work that one chip does.
struct Shard {
  std::int64_t sequences = 1;        // micro-batch
  std::int64_t sequence_length = 0;  // tokens
  std::int64_t tensor = 1;           // features (heads, MLP width, vocabulary) are divided by this
  bool sequence_parallel = false;    // tokens of the S region are divided by `tensor` too
  DataType type = DataType::kBf16;   // weights, activations and arithmetic
};

enum class Region : std::uint8_t {
  kSequence,  // S: every feature of some tokens (of all tokens without sequence parallelism)
  kTensor,    // T: some features of every token
};

struct LayerOp {
  std::string_view name;  // a literal: "qkv_projection"
  Region region = Region::kSequence;
  std::vector<Kernel> forward{};
  std::vector<Kernel> input_gradient{};
  std::vector<Kernel> weight_gradient{};  // of matmul weights and embedding tables
  Bytes saved{};               // kept from its forward to its weight gradient (or input gradient)
  Bytes saved_cheaply{};       // part of `saved` that its forward alone makes again: what selective
                               // recompute drops (Korthikanti et al., section 5)
  Bytes forward_workspace{};   // lives only while its forward runs: what nobody keeps
  Bytes backward_workspace{};  // lives only while its backward runs: gradients, gathered input
  std::int64_t parameters = 0;  // on this chip
  // The first T op after an S op multiplies weights with the gathered tokens, but keeps only its
  // own part: its weight gradient needs them gathered again.
  bool regathers_input = false;
  // Vocabulary-parallel cross entropy: fp32 values a token that are summed over the tensor group
  // during its forward (max, sum of exponentials, target logit).
  std::int64_t reduced_values_per_token = 0;
};

struct Layer {
  std::string name;
  std::vector<LayerOp> ops;  // in order of the forward pass
  std::int64_t parameters() const;
  Bytes saved() const;
};

struct ModelLayers {
  Layer embedding;
  Layer block;     // all blocks are alike
  Layer head;      // final norm, unembedding, loss
  Bytes boundary;  // [sequences x tokens, hidden] of all tokens: what the tensor group gathers and
                   // reduces at each change of region
};

// REQUIRES: check(model) is empty; shard.tensor divides heads, kv_heads, intermediate and, with
// sequence parallelism, sequences * sequence_length.
ModelLayers build_layers(const ModelSpec& model, const Shard& shard);

}  // namespace stepsim
