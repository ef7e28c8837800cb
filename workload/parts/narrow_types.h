// NarrowTypes says what becomes of operands with fewer bits than 16: their scales, and where they
// are rounded and transposed. schedules/plan/keys/software_fields.cc says what each key does and
// when to change it.

#pragma once

#include <cstdint>
#include <optional>

#include "sim/chips/kernel.h"

namespace stepsim {

struct NarrowTypes {
  // Values of one byte: so many neighbours in a row share an fp32 scale (128 in DeepSeek-V3, arXiv
  // 2412.19437, section 3.3.2). Unset: a whole tensor shares one.
  std::optional<std::int64_t> scale_block{};
  bool scale_rows = false;  // each row of an operand has a scale of its own (too few to count)
  // Operands that share one scale are read once before they are rounded, for their largest value;
  // else it is that of steps before (Transformer Engine: delayed scaling).
  bool current_scaling = false;
  // Tensor ranks round their own tokens before they gather what narrow matmuls read, and gather it
  // narrow (Transformer Engine: _linear_forward and grad_output_preprocess); else all of them round
  // all that was gathered.
  bool gather_narrow = false;
  // Weights are rounded in the forward and in the backward of every micro-batch (torchao); else
  // once a step, which is not counted.
  bool round_weights = false;
  bool keep_narrow_weights = false;
  // Type in which the input of an MLP's activation function is kept. Unset: the activations' type.
  std::optional<DataType> activation_input_type{};
  // Bits in which a value of attention's result is kept, with scales for blocks as above; 12 is
  // DeepSeek-V3's E5M6 (section 3.3.3). Unset: kept as the activations are.
  std::optional<std::int64_t> attention_result_bits{};
  // One-byte weights of matmuls are transposed for the input gradient of every micro-batch; else
  // once a step, which is not counted.
  bool transpose_weights = false;
  // Kernels transpose operands of weight gradients that share one scale, for chips whose narrow
  // matmuls read both operands along the inner dimension only.
  bool transpose_operands = false;

  // Returns whether rows of an operand of this type, or blocks of them, have scales. Along the
  // tokens it then has others.
  bool scales_rows(DataType operand) const {
    return scale_block || scale_rows || block_scales_of(operand);
  }
};

}  // namespace stepsim
