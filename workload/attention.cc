#include "workload/attention.h"

#include <utility>

namespace stepsim {
namespace {

std::int64_t query_width(const Part& part) {
  return part.heads * part.model.head_dim;
}

std::int64_t qkv_width(const Part& part) {
  return (part.heads + 2 * part.kv_heads) * part.model.head_dim;
}

std::int64_t qk_width(const Part& part) {
  return (part.heads + part.kv_heads) * part.model.head_dim;
}

// Rotates pairs of features of q and k: two multiplications and an addition a value.
LayerOp rope(const Part& part) {
  const std::int64_t elements = part.tokens * qk_width(part);
  const Kernel rotation = part.elementwise("rope", {.elements = elements, .flops = 3});
  LayerOp op{.name = "rope", .region = Region::kTensor};
  op.forward = {rotation};
  op.input_gradient = {rotation};
  op.backward_workspace = 2 * part.size(elements);
  return op;
}

// RMS norm of q and k, head by head; keeps both as they were before.
LayerOp qk_norm(const Part& part) {
  const std::int64_t elements = part.tokens * qk_width(part);
  LayerOp op{.name = "qk_norm", .region = Region::kTensor};
  op.parameters = 2 * part.model.head_dim;
  op.forward = {part.elementwise(op.name, {.elements = elements, .flops = 4})};
  op.input_gradient = {part.elementwise(
      op.name, {.elements = elements, .reads = 2, .flops = 9, .accumulated = op.parameters})};
  op.saved = part.size(elements);
  op.backward_workspace = 2 * part.size(elements);
  return op;
}

LayerOp attention(const Part& part, const BlockKind& kind) {
  const AttentionShape shape = attention_shape(part, kind);
  const DataType type = part.shard.types.activations;
  const Bytes inputs = part.size(part.tokens * qkv_width(part));
  const Bytes output = part.size(part.tokens * query_width(part));
  LayerOp op{.name = "attention", .region = Region::kTensor};
  op.forward = {attention_forward("attention", type, shape)};
  op.input_gradient = {attention_backward("attention", type, shape)};
  op.saved = inputs + output + log_sum_exp_size(shape);
  op.saved_cheaply = log_sum_exp_size(shape);
  op.backward_workspace = inputs + output;
  if (part.model.attention_sinks) op.parameters = part.heads;
  return op;
}

}  // namespace

AttentionShape attention_shape(const Part& part, const BlockKind& kind) {
  const Shard& shard = part.shard;
  const ModelSpec& model = part.model;
  const std::int64_t s = shard.sequence_length;
  return {.sequences = shard.sequences,
          .heads = part.heads,
          .kv_heads = part.kv_heads,
          .queries = s / shard.context,
          .keys = s,
          .qk_dim = model.head_dim,
          .v_dim = model.head_dim,
          .pairs = attention_pairs(s, model.causal, kind.local ? model.window : 0) /
                   static_cast<double>(shard.context)};
}

std::vector<LayerOp> attention_branch(const Part& part, const BlockKind& kind) {
  const ModelSpec& model = part.model;
  std::vector<LayerOp> ops;
  ops.push_back(branch_norm(part, "attention_norm"));
  ops.push_back(project_gathered(part, {.name = "qkv_projection",
                                        .inputs = part.hidden(),
                                        .outputs = qkv_width(part),
                                        .bias = model.attention_bias || model.qkv_bias,
                                        .narrow = true}));
  if (model.qk_norm) ops.push_back(qk_norm(part));
  if (model.rotary && model.learned_positions == 0) ops.push_back(rope(part));
  ops.push_back(attention(part, kind));
  ops.push_back(project_partial(part, {.name = "out_projection",
                                       .inputs = query_width(part),
                                       .outputs = part.hidden(),
                                       .narrow = true}));
  ops.push_back(residual(part, "attention_residual", model.attention_bias));
  return ops;
}

}  // namespace stepsim
