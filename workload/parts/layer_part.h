// Part is one chip's part of the model and of the micro-batch. Below it are the ops of which layers
// of every kind are made.
//
// An op keeps the inputs that its own backward reads, unless an earlier op of the same region keeps
// them already. So nothing is kept twice:
//
//   norm            its input
//   qkv, gate_up    the norm's output, own part only (gathered again for the weight gradient)
//   rope, residual  nothing but the mask of dropout, a byte a value
//   attention       fused: q, k (after rope), v, its output and the log-sum-exp: so out_projection,
//                   which reads that output, keeps nothing. Not fused: q, k, v, the probabilities;
//                   with dropout its mask and the probabilities after it
//   activation      gate and up (or the GELU's input), maybe rounded; down_projection keeps its
//                   product
//   router          the norm's output, if no shared expert keeps it; fp32 scores; the choice
//   experts         the tokens that came, and as an MLP does
//   embedding       the token ids
//   cross_entropy   what its kernels leave of the logits (LossKernels), an fp32 statistic a token
//                   (two if fused: with the largest logit) and the target ids
//
// Row statistics of the norms (4 or 8 bytes a token) are not counted. The workspace of a backward
// is the gradients of the op's output and input, and the gathered input unless that is kept. A
// forward's result is kept by the op that reads it. So the workspace of a forward holds only what
// nobody keeps: the gathered input, and partial sums before they are reduced.
//
// If matmuls multiply in a narrower type than the activations have (FP8), a separate kernel rounds
// each operand that is not narrow yet. Weights are rounded once a step, which is not counted. If
// rows or blocks of a row have scales, the operands of weight gradients are also rounded along the
// tokens.
//
// KernelChoices::fused_elementwise says how many kernels that takes:
//
//   gradient of a result     fused: read once, rounded both ways. Else read twice, by two kernels
//   input, the other way     from the narrow one that was kept. Else from the wide one: it is made
//                            again, or kept for others. What arrived narrow is read narrow
//   an activation's input    where it is kept narrow: written beside the product and read by the
//                            backward. Else rounded by one kernel and made wide again by another
//   the experts' weights     a token has for its experts: their gradient comes out of the backward
//                            of the experts' activation. Else a kernel reads both its sides again
//
// All kernels of an op carry its name, unless they do something else besides. FLOPs of elementwise
// kernels are rounded counts of arithmetic operations: memory is what bounds them.

#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "workload/parts/kernels.h"
#include "workload/parts/layer_op.h"

namespace stepsim {

struct Part {
  const ModelSpec& model;
  const Shard& shard;
  std::int64_t tokens;      // of the T region: those of the whole tensor group
  std::int64_t own_tokens;  // of the S region
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t intermediate;
  std::int64_t vocabulary;

  std::int64_t hidden() const { return model.hidden; }
  // Returns the rows of the whole embedding.
  std::int64_t whole_vocabulary() const {
    return shard.habits.padded(model.embedding.vocabulary, shard.tensor);
  }
  bool drops_out() const {
    return model.dropout ||
           (shard.habits.dropout && !model.mlp.gated && model.kind == ModelKind::kTransformer);
  }
  bool divides_width() const { return shard.tensor_width > 1; }
  // Returns how many elements of a vector over the model's width this chip has in the S region.
  std::int64_t own_width() const { return divides_width() ? hidden() / shard.tensor : hidden(); }
  std::int64_t norm_parameters() const {
    return (model.norms.kind == NormKind::kLayer ? 2 : 1) * own_width();
  }
  std::int64_t mlp_inputs() const { return model.mlp.gated ? 2 : 1; }  // gate and up, or up alone
  Bytes size(std::int64_t values) const { return values * size_of(shard.types.activations); }
  Bytes operand_size(std::int64_t values) const { return scaled_size(values, shard.types.matmul); }
  // Returns the size of values, including the scales of narrow ones.
  Bytes scaled_size(std::int64_t values, DataType type) const {
    const bool is_narrow = size_of(type) == Bytes(1) && !block_scales_of(type);
    const std::int64_t block = is_narrow ? shard.narrow.scale_block.value_or(0) : 0;
    const std::int64_t scales = block > 0 ? (values + block - 1) / block : 0;
    return bytes_of(values, type) + scales * size_of(DataType::kFp32);
  }
  bool scales_rows() const { return shard.narrow.scales_rows(shard.types.matmul); }
  // Whether operands of weight gradients are needed along the tokens as well.
  bool turns() const { return scales_rows() || shard.narrow.transpose_operands; }
  bool narrows() const { return bits_of(shard.types.matmul) < bits_of(shard.types.activations); }
  Bytes stream() const { return size(tokens * hidden()); }          // for all tokens
  Bytes own_stream() const { return size(own_tokens * hidden()); }  // for the S region's tokens
  bool gathers() const { return own_tokens != tokens; }

  Kernel elementwise(std::string_view name, const ElementwiseShape& shape) const {
    return stepsim::elementwise(name, shard.types.activations, shape);
  }
};

Part part_of_model(const ModelSpec& model, const Shard& shard);

// Projection is a matrix that multiplies tokens: [tokens, inputs] @ [inputs, outputs].
struct Projection {
  OpName name{};
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  bool bias = false;    // added in the forward matmul's epilogue
  bool narrow = false;  // multiplies in DataTypes::matmul, otherwise in the type of the activations
  bool flat = false;    // has the whole width, whatever Shard::tensor_width is
  bool keeps_wide = false;  // narrow, but its input is kept in the type of the activations
};

// An op of the T region over all tokens. It keeps nothing: the caller adds what it keeps.
LayerOp project(const Part& part, const Projection& projection);
// Reads the S region's tokens, gathered (Megatron-LM's column parallel). It keeps its own part.
LayerOp project_gathered(const Part& part, const Projection& projection);
// Its results are partial sums over the tensor group (row parallel).
LayerOp project_partial(const Part& part, const Projection& projection);
// Under two-dimensional weights both also have a part of the width, and reduce or gather over it.

// An op of the S region: own tokens, the whole matrix on every tensor rank.
LayerOp project_own(const Part& part, const Projection& projection);

// Makes the op keep this many bytes of its input.
void keep_input(LayerOp& op, Bytes input);

// Rounds `values` to the operands' type if that is narrower; otherwise adds nothing.
void add_rounding(const Part& part, KernelUse use, std::int64_t values,
                  std::vector<Kernel>& kernels);

// Rounds the gradient of a matmul's result, before the matmuls that read it. If blocks of a row
// have scales, or operands are transposed, it is rounded both ways, as the inner dimension of the
// weight gradient is the tokens.
void add_gradient_rounding(const Part& part, std::int64_t values, LayerOp& op);

// Rounds an operand of a weight gradient along the tokens, if blocks of a row have scales, or moves
// it so (NarrowTypes::transpose_operands). The operand is there by rows, narrow or `wide`. The
// kernel goes before the matmul.
void add_turning(const Part& part, std::string_view name, std::int64_t values, bool wide,
                 LayerOp& op);

// Transposes this many weights before the matmul of an input gradient
// (NarrowTypes::transpose_weights).
void add_transpose(const Part& part, std::int64_t weights, LayerOp& op);

// Adds a mask of one byte per value, written in the forward pass and read in the backward pass.
void add_dropout_mask(LayerOp& op, std::int64_t values);

LayerOp norm(const Part& part, OpName name);
// Makes `op`, which has its name and its scales (parameters) already, an RMS norm of values other
// than the stream's: kernels, kept bytes and backward workspace.
void make_rms_norm(const Part& part, std::int64_t elements, LayerOp& op);
// Returns the norm at the start of a branch. Its input's gradient is added to that of the residual
// stream. Without NormSpec::pre only that addition is left.
LayerOp branch_norm(const Part& part, OpName name);
// Adds the norm (NormSpec::post) of a branch's result, if the model has them.
void add_post_norm(const Part& part, OpName name, std::vector<LayerOp>& ops);
// The branch begins with a T op that reads what a branch before has gathered already. It gathers
// and keeps nothing, and both gradients of the shared input are added.
void share_input(const Part& part, OpName source, LayerOp& op);
// The branch ends with a T op whose partial sums are added to those of a branch before.
void share_result(const Part& part, LayerOp& op);
// The branch's result joins the residual stream. The bias of the projection before is added here,
// after the sum over the tensor group, so it belongs to the S region and is on every chip.
LayerOp residual(const Part& part, OpName name, bool bias);

}  // namespace stepsim
