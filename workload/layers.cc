// Who keeps what, so that nothing is kept twice: an op keeps the inputs that its own backward
// reads, except where an earlier op of the same region keeps them already.
//
//   norm            its input
//   qkv, gate_up    the norm's output, own part only (gathered again for the weight gradient)
//   rope, residual  nothing
//   attention       q, k (after rope), v, its output and the log-sum-exp: so out_projection, which
//                   reads that output, keeps nothing
//   activation      gate and up (or the GELU's input); its product is kept by down_projection
//   embedding       the token ids
//   cross_entropy   the logits, in the type of the activations, two fp32 statistics a token and
//                   the target ids. A fused kernel is assumed that keeps the fp32 values in
//                   registers and overwrites the logits with their gradient
//
// Row statistics of the norms (4 or 8 bytes a token) are not counted. The workspace of a backward
// is the gradients of the op's output and input, and the gathered input where that is not kept.
// What a forward writes is kept by the op that reads it, so it has a workspace only for what nobody
// keeps: the gathered input, and partial sums before they are reduced.
//
// All kernels of an op carry its name, unless they do something else besides. FLOPs of elementwise
// kernels are rounded counts of arithmetic operations: memory is what bounds them.

#include "workload/layers.h"

#include <cassert>
#include <utility>

#include "workload/kernels.h"

namespace stepsim {
namespace {

constexpr std::int64_t kTokenIdBytes = 8;

// What one chip has of the model and of the micro-batch.
struct Part {
  const ModelSpec& model;
  const Shard& shard;
  std::int64_t tokens;      // of the T region: all
  std::int64_t own_tokens;  // of the S region
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t intermediate;
  std::int64_t vocabulary;

  std::int64_t hidden() const { return model.hidden; }
  std::int64_t query_width() const { return heads * model.head_dim; }
  std::int64_t qkv_width() const { return (heads + 2 * kv_heads) * model.head_dim; }
  std::int64_t mlp_input_width() const { return (model.gated_mlp ? 2 : 1) * intermediate; }
  std::int64_t norm_parameters() const {
    return (model.norm == NormKind::kLayer ? 2 : 1) * model.hidden;
  }
  Bytes size(std::int64_t values) const { return values * size_of(shard.type); }
  Bytes stream() const { return size(tokens * hidden()); }          // of all tokens
  Bytes own_stream() const { return size(own_tokens * hidden()); }  // of the S region's tokens
  bool gathers() const { return own_tokens != tokens; }

  Kernel elementwise(std::string_view name, const ElementwiseShape& shape) const {
    return stepsim::elementwise(name, shard.type, shape);
  }
};

Part part_of(const ModelSpec& model, const Shard& shard) {
  assert(check(model).empty());
  assert(shard.sequences >= 1 && shard.sequence_length >= 1 && shard.tensor >= 1);
  assert(model.heads % shard.tensor == 0 && model.kv_heads % shard.tensor == 0);
  assert(model.intermediate % shard.tensor == 0);
  const std::int64_t tokens = shard.sequences * shard.sequence_length;
  const std::int64_t token_parts = shard.sequence_parallel ? shard.tensor : 1;
  assert(tokens % token_parts == 0);
  return {.model = model,
          .shard = shard,
          .tokens = tokens,
          .own_tokens = tokens / token_parts,
          .heads = model.heads / shard.tensor,
          .kv_heads = model.kv_heads / shard.tensor,
          .intermediate = model.intermediate / shard.tensor,
          .vocabulary = (model.vocabulary + shard.tensor - 1) / shard.tensor};
}

// A matrix that multiplies every token: [tokens, inputs] @ [inputs, outputs].
struct Projection {
  std::string_view name;
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  bool bias = false;  // added in the forward matmul's epilogue
};

LayerOp project(const Part& part, const Projection& projection) {
  const auto& [name, inputs, outputs, bias] = projection;
  const DataType type = part.shard.type;
  LayerOp op{.name = name, .region = Region::kTensor};
  op.forward = {matmul(name, type, {.m = part.tokens, .n = outputs, .k = inputs})};
  op.input_gradient = {matmul(name, type, {.m = part.tokens, .n = inputs, .k = outputs})};
  op.weight_gradient = {
      accumulating_matmul(name, type, {.m = outputs, .n = inputs, .k = part.tokens})};
  op.parameters = inputs * outputs;
  op.backward_workspace = part.size(part.tokens * (inputs + outputs));
  if (bias) {
    op.forward.front().read += part.size(outputs);
    op.weight_gradient.push_back(part.elementwise(
        "bias_gradient",
        {.elements = part.tokens * outputs, .writes = 0, .flops = 1, .accumulated = outputs}));
    op.parameters += outputs;
  }
  return op;
}

// A projection that reads the S region's tokens, gathered: Megatron-LM's column parallel.
LayerOp project_gathered(const Part& part, const Projection& projection) {
  LayerOp op = project(part, projection);
  op.saved = part.own_stream();
  op.regathers_input = part.gathers();
  if (part.gathers()) {
    op.forward_workspace = part.stream();
    op.backward_workspace += part.stream();
  }
  return op;
}

// A projection whose results are partial sums over the tensor group: row parallel.
LayerOp project_partial(const Part& part, const Projection& projection) {
  LayerOp op = project(part, projection);
  if (part.shard.tensor > 1) op.forward_workspace = part.stream();
  return op;
}

LayerOp norm(const Part& part, std::string_view name) {
  const bool layer_norm = part.model.norm == NormKind::kLayer;
  const std::int64_t elements = part.own_tokens * part.hidden();
  LayerOp op{.name = name};
  // Forward: sum of squares, scaled by deviation and scale; layer norm has mean and shift too.
  op.forward = {part.elementwise(name, {.elements = elements, .flops = layer_norm ? 7 : 4})};
  op.forward.front().read += part.size(part.norm_parameters());
  op.input_gradient = {part.elementwise(name, {.elements = elements,
                                               .reads = 2,
                                               .flops = layer_norm ? 13 : 9,
                                               .accumulated = part.norm_parameters()})};
  op.saved = part.own_stream();
  op.backward_workspace = 2 * part.own_stream();
  op.parameters = part.norm_parameters();
  return op;
}

// A norm at the entry of a branch: its input's gradient is added to that of the residual stream.
LayerOp branch_norm(const Part& part, std::string_view name) {
  LayerOp op = norm(part, name);
  op.input_gradient.push_back(part.elementwise(
      "residual_gradient", {.elements = part.own_tokens * part.hidden(), .reads = 2, .flops = 1}));
  return op;
}

// The branch's result joins the residual stream. The bias of the projection before is added here,
// after the sum over the tensor group, so it belongs to the S region and is on every chip.
LayerOp residual(const Part& part, std::string_view name, bool bias) {
  const std::int64_t elements = part.own_tokens * part.hidden();
  LayerOp op{.name = name};
  op.forward = {part.elementwise(name, {.elements = elements, .reads = 2, .flops = bias ? 2 : 1})};
  op.backward_workspace = 2 * part.own_stream();
  if (bias) {
    op.forward.front().read += part.size(part.hidden());
    op.input_gradient = {part.elementwise(
        "bias_gradient",
        {.elements = elements, .writes = 0, .flops = 1, .accumulated = part.hidden()})};
    op.parameters = part.hidden();
  }
  return op;
}

// Rotates pairs of features of q and k: two multiplications and an addition a value.
LayerOp rope(const Part& part) {
  const std::int64_t width = (part.heads + part.kv_heads) * part.model.head_dim;
  const Kernel rotation = part.elementwise("rope", {.elements = part.tokens * width, .flops = 3});
  LayerOp op{.name = "rope", .region = Region::kTensor};
  op.forward = {rotation};
  op.input_gradient = {rotation};
  op.backward_workspace = 2 * part.size(part.tokens * width);
  return op;
}

LayerOp attention(const Part& part) {
  const AttentionShape shape{.sequences = part.shard.sequences,
                             .heads = part.heads,
                             .kv_heads = part.kv_heads,
                             .queries = part.shard.sequence_length,
                             .keys = part.shard.sequence_length,
                             .qk_dim = part.model.head_dim,
                             .v_dim = part.model.head_dim};
  const Bytes inputs = part.size(part.tokens * part.qkv_width());
  const Bytes output = part.size(part.tokens * part.query_width());
  LayerOp op{.name = "attention", .region = Region::kTensor};
  op.forward = {attention_forward("attention", part.shard.type, shape)};
  op.input_gradient = {attention_backward("attention", part.shard.type, shape)};
  op.saved = inputs + output + log_sum_exp_size(shape);
  op.saved_cheaply = log_sum_exp_size(shape);
  op.backward_workspace = inputs + output;
  return op;
}

// silu(gate) x up, or gelu(up).
LayerOp activation(const Part& part) {
  const bool gated = part.model.gated_mlp;
  const std::int64_t elements = part.tokens * part.intermediate;
  const std::int64_t inputs = gated ? 2 : 1;
  LayerOp op{.name = "mlp_activation", .region = Region::kTensor};
  op.forward = {
      part.elementwise(op.name, {.elements = elements, .reads = inputs, .flops = gated ? 6 : 10})};
  op.input_gradient = {part.elementwise(
      op.name,
      {.elements = elements, .reads = inputs + 1, .writes = inputs, .flops = gated ? 12 : 20})};
  op.saved = part.size(elements * inputs);
  op.backward_workspace = part.size(elements * (inputs + 1));
  return op;
}

// Each chip looks every token up in its own rows; the results are summed over the tensor group.
LayerOp embedding(const Part& part) {
  const std::int64_t elements = part.tokens * part.hidden();
  const std::int64_t found = elements / part.shard.tensor;  // rows it has, on average
  LayerOp op{.name = "embedding", .region = Region::kTensor};
  op.forward = {part.elementwise(op.name, {.elements = elements, .reads = 0})};
  op.forward.front().read += part.size(found) + Bytes(part.tokens * kTokenIdBytes);
  op.weight_gradient = {
      part.elementwise(op.name, {.elements = found, .writes = 0, .accumulated = found})};
  op.saved = Bytes(part.tokens * kTokenIdBytes);
  op.forward_workspace = part.stream();
  op.backward_workspace = part.stream();
  op.parameters = part.vocabulary * part.hidden();
  return op;
}

LayerOp position_embedding(const Part& part) {
  const std::int64_t elements = part.own_tokens * part.hidden();
  LayerOp op{.name = "position_embedding"};
  op.forward = {part.elementwise(op.name, {.elements = elements, .reads = 2, .flops = 1})};
  op.weight_gradient = {
      part.elementwise(op.name, {.elements = elements, .writes = 0, .accumulated = elements})};
  op.backward_workspace = 2 * part.own_stream();
  op.parameters = part.model.learned_positions * part.hidden();
  return op;
}

// Three fp32 values a token are reduced: the largest logit, the sum of exponentials (both found in
// one pass over the logits) and the target's logit.
LayerOp cross_entropy(const Part& part) {
  const std::int64_t logits = part.tokens * part.vocabulary;
  const std::int64_t reduced = 3;
  const Bytes statistic = part.tokens * size_of(DataType::kFp32);
  const Bytes targets = Bytes(part.tokens * kTokenIdBytes);
  LayerOp op{.name = "cross_entropy", .region = Region::kTensor};
  op.forward = {part.elementwise(op.name, {.elements = logits, .writes = 0, .flops = 5})};
  op.forward.front().read += targets;
  op.forward.front().written += reduced * statistic;
  op.input_gradient = {part.elementwise(op.name, {.elements = logits, .flops = 4})};
  op.input_gradient.front().read += 2 * statistic + targets;
  op.saved = part.size(logits) + 2 * statistic + targets;
  op.forward_workspace = reduced * statistic;
  op.reduced_values_per_token = reduced;
  return op;
}

Layer embedding_layer(const Part& part) {
  Layer layer{.name = "embedding", .ops = {embedding(part)}};
  if (part.model.learned_positions > 0) layer.ops.push_back(position_embedding(part));
  return layer;
}

Layer block_layer(const Part& part) {
  const ModelSpec& model = part.model;
  Layer layer{.name = "block", .ops = {}};
  const auto add = [&layer](LayerOp op) { layer.ops.push_back(std::move(op)); };
  add(branch_norm(part, "attention_norm"));
  add(project_gathered(part, {.name = "qkv_projection",
                              .inputs = part.hidden(),
                              .outputs = part.qkv_width(),
                              .bias = model.attention_bias}));
  if (model.learned_positions == 0) add(rope(part));
  add(attention(part));
  add(project_partial(
      part, {.name = "out_projection", .inputs = part.query_width(), .outputs = part.hidden()}));
  add(residual(part, "attention_residual", model.attention_bias));
  add(branch_norm(part, "mlp_norm"));
  add(project_gathered(part, {.name = model.gated_mlp ? "gate_up_projection" : "up_projection",
                              .inputs = part.hidden(),
                              .outputs = part.mlp_input_width(),
                              .bias = model.mlp_bias}));
  add(activation(part));
  LayerOp down = project_partial(
      part, {.name = "down_projection", .inputs = part.intermediate, .outputs = part.hidden()});
  down.saved = part.size(part.tokens * part.intermediate);
  add(std::move(down));
  add(residual(part, "mlp_residual", model.mlp_bias));
  return layer;
}

Layer head_layer(const Part& part) {
  LayerOp unembedding = project_gathered(
      part, {.name = "unembedding", .inputs = part.hidden(), .outputs = part.vocabulary});
  if (part.model.tied_embeddings) unembedding.parameters = 0;  // the embedding's own table
  // The gradient of the logits stands where the logits are kept.
  unembedding.backward_workspace -= part.size(part.tokens * part.vocabulary);
  return {.name = "head",
          .ops = {norm(part, "final_norm"), std::move(unembedding), cross_entropy(part)}};
}

}  // namespace

std::int64_t Layer::parameters() const {
  std::int64_t sum = 0;
  for (const LayerOp& op : ops) sum += op.parameters;
  return sum;
}

Bytes Layer::saved() const {
  Bytes sum;
  for (const LayerOp& op : ops) sum += op.saved;
  return sum;
}

ModelLayers build_layers(const ModelSpec& model, const Shard& shard) {
  const Part part = part_of(model, shard);
  return {.embedding = embedding_layer(part),
          .block = block_layer(part),
          .head = head_layer(part),
          .boundary = part.stream()};
}

}  // namespace stepsim
