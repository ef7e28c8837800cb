#include "workload/attention.h"

#include <iterator>
#include <utility>

#include "workload/latent_attention.h"

namespace stepsim {
namespace {

std::int64_t qkv_width(const Part& part) {
  return (part.heads + 2 * part.kv_heads) * part.model.head_dim;
}

std::int64_t qk_width(const Part& part) {
  return (part.heads + part.kv_heads) * part.model.head_dim;
}

// Rotates pairs of features of q and k, with two multiplications and an addition per value.
LayerOp rope(const Part& part) {
  const std::int64_t elements = part.tokens * qk_width(part);
  const Kernel rotation =
      part.elementwise("rope", {.elements = elements, .flops = 3, .kind = ElementwiseKind::kRope});
  LayerOp op{.name = "rope", .region = Region::kTensor};
  op.forward = {rotation};
  op.input_gradient = {rotation};
  op.input = part.size(part.tokens * qkv_width(part));
  op.passed_on = op.input - part.size(elements);
  op.backward_workspace = 2 * part.size(elements);
  return op;
}

// RMS norm of q and k, head by head. It keeps both in their previous form.
LayerOp qk_norm(const Part& part) {
  const std::int64_t elements = part.tokens * qk_width(part);
  LayerOp op{.name = "qk_norm", .region = Region::kTensor};
  op.parameters = 2 * part.model.head_dim;
  make_rms_norm(part, elements, op);
  op.input = part.size(part.tokens * qkv_width(part));
  op.passed_on = op.input - part.size(elements);
  return op;
}

std::vector<LayerOp> projections(const Part& part) {
  const ModelSpec& model = part.model;
  if (model.latent.kv_rank > 0) return latent_projections(part);
  std::vector<LayerOp> ops;
  ops.push_back(project_gathered(part, {.name = "qkv_projection",
                                        .inputs = part.hidden(),
                                        .outputs = qkv_width(part),
                                        .bias = model.attention_bias || model.qkv_bias,
                                        .narrow = true}));
  ops.back().columns = {part.heads * model.head_dim, part.kv_heads * model.head_dim,
                        part.kv_heads * model.head_dim};
  if (model.parallel_branches) ops.back().regathers_input = false;  // the MLP gathers it again
  if (model.qk_norm) ops.push_back(qk_norm(part));
  if (model.rotary && model.learned_positions == 0) ops.push_back(rope(part));
  return ops;
}

struct AttentionSizes {
  Bytes inputs;  // q, k and v
  Bytes output;
  std::int64_t scores = 0;  // number of scores: every query with every key, masked or not
};

AttentionSizes sizes(const Part& part, const AttentionShape& shape) {
  return {.inputs = part.size(part.tokens * (shape.heads * shape.qk_dim +
                                             shape.kv_heads * (shape.qk_dim + shape.v_dim))),
          .output = part.size(part.tokens * shape.heads * shape.v_dim),
          .scores = shape.sequences * shape.queries * shape.keys * shape.heads};
}

// Returns the bytes of attention's result in DataTypes::attention_result_bits, with scales.
Bytes kept_result(const Part& part, std::int64_t values) {
  const DataTypes& types = part.shard.types;
  const std::int64_t scales =
      types.scale_block ? (values + *types.scale_block - 1) / *types.scale_block : 0;
  return Bytes((values * *types.attention_result_bits + 7) / 8) + scales * size_of(DataType::kFp32);
}

LayerOp fused(const Part& part, const AttentionShape& shape) {
  const DataType type = part.shard.types.activations;
  const auto [inputs, output, scores] = sizes(part, shape);
  LayerOp op{.name = "attention", .region = Region::kTensor};
  op.forward = {attention_forward("attention", type, shape)};
  op.input_gradient = {attention_backward("attention", type, shape)};
  keep_input(op, inputs);
  op.saved_result = output;
  if (part.shard.types.attention_result_bits) {
    const std::int64_t values = part.tokens * shape.heads * shape.v_dim;
    op.saved_result = kept_result(part, values);
    op.again = op.forward;
    op.forward.push_back(rounding("round_result", type, values, output, op.saved_result));
    Kernel widen = part.elementwise("widen_result", {.elements = values, .reads = 0});
    widen.read = op.saved_result;
    op.input_gradient.insert(op.input_gradient.begin(), widen);
  }
  op.saved_inside = log_sum_exp_size(shape);
  op.saved += op.saved_result + op.saved_inside;
  op.backward_workspace = inputs + output;
  return op;
}

// Scores are made and kept in the type of the activations. One kernel masks, scales and normalises
// them in one pass. out_projection keeps the output, counted here as with the fused kernel.
LayerOp unfused(const Part& part, const AttentionShape& shape) {
  const DataType type = part.shard.types.activations;
  const auto [inputs, output, scores] = sizes(part, shape);
  const std::int64_t batch = shape.sequences * shape.heads;
  const std::int64_t m = shape.queries, n = shape.keys;
  const auto product = [&](std::string_view name, std::int64_t rows, std::int64_t columns,
                           std::int64_t inner) {
    return matmul(name, {type, type}, {.batch = batch, .m = rows, .n = columns, .k = inner});
  };
  LayerOp op{.name = "attention", .region = Region::kTensor};
  const Kernel softmax = part.elementwise("softmax", {.elements = scores, .flops = 6});
  Kernel softmax_gradient =
      part.elementwise("softmax", {.elements = scores, .reads = 2, .flops = 5});
  Kernel dropout = part.elementwise("attention_dropout", {.elements = scores, .flops = 1});
  Bytes kept = part.size(scores);  // the probabilities
  op.forward = {product("attention_scores", m, n, shape.qk_dim), softmax};
  op.input_gradient = {product("attention_values", m, n, shape.v_dim),
                       product("attention_values", n, shape.v_dim, m)};
  if (part.model.dropout) {
    Kernel back = dropout;
    dropout.written += Bytes(scores);  // the mask, one byte per value
    back.read += Bytes(scores);
    op.forward.push_back(dropout);
    op.input_gradient.push_back(back);
    kept += Bytes(scores) + part.size(scores);  // the mask and the probabilities after it
  }
  op.forward.push_back(product("attention_values", m, shape.v_dim, n));
  op.input_gradient.insert(op.input_gradient.end(),
                           {softmax_gradient, product("attention_scores", m, shape.qk_dim, n),
                            product("attention_scores", n, shape.qk_dim, m)});
  keep_input(op, inputs);
  op.saved_result = output;
  op.saved_inside = kept;
  op.saved += op.saved_result + op.saved_inside;
  op.forward_workspace = part.size(scores);  // the scores before the softmax
  op.backward_workspace = inputs + output + 2 * part.size(scores);
  return op;
}

}  // namespace

LayerOp attention(const Part& part, const AttentionShape& shape) {
  LayerOp op = part.shard.fused_attention ? fused(part, shape) : unfused(part, shape);
  if (part.model.attention_sinks) op.parameters = part.heads;
  return op;
}

AttentionShape attention_shape(const Part& part, const BlockKind& kind) {
  const Shard& shard = part.shard;
  const ModelSpec& model = part.model;
  const std::int64_t s = shard.sequence_length;
  return {.sequences = shard.sequences,
          .heads = part.heads,
          .kv_heads = part.kv_heads,
          .queries = s / shard.context,
          .keys = s,
          .qk_dim = model.qk_dim(),
          .v_dim = model.v_dim(),
          .pairs = attention_pairs(s, model.causal, kind.local ? model.window : 0) /
                   static_cast<double>(shard.context)};
}

std::vector<LayerOp> attention_branch(const Part& part, const BlockKind& kind) {
  const ModelSpec& model = part.model;
  std::vector<LayerOp> ops;
  ops.push_back(branch_norm(part, model.parallel_branches ? "norm" : "attention_norm"));
  std::vector<LayerOp> inputs = projections(part);
  std::move(inputs.begin(), inputs.end(), std::back_inserter(ops));
  ops.push_back(attention(part, attention_shape(part, kind)));
  ops.push_back(project_partial(part, {.name = "out_projection",
                                       .inputs = part.heads * model.v_dim(),
                                       .outputs = part.hidden(),
                                       .narrow = true,
                                       .keeps_wide = true}));
  if (model.parallel_branches) return ops;
  if (model.post_norms) ops.push_back(norm(part, "attention_post_norm"));
  ops.push_back(residual(part, "attention_residual", model.attention_bias));
  return ops;
}

}  // namespace stepsim
