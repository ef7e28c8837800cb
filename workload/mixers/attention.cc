#include "workload/mixers/attention.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

#include "workload/mixers/compressed_attention.h"
#include "workload/mixers/latent_attention.h"
#include "workload/mixers/sparse_attention.h"

namespace stepsim {
namespace {

// The widths of queries, keys and values that a layer projects on one chip.
struct QkvWidths {
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t values = 0;
  std::int64_t gate = 0;

  std::int64_t rotated() const { return queries + keys; }
  std::int64_t all() const { return queries + keys + values; }
};

QkvWidths widths_of(const Part& part, const BlockKind& kind) {
  const ModelSpec& model = part.model;
  QkvWidths widths{.queries = part.heads * model.attention.head_dim};
  if (model.attention.gate == AttentionGate::kHead) widths.gate = part.heads;
  if (model.attention.gate == AttentionGate::kValue) widths.gate = part.heads * model.v_dim();
  if (kind.shares && kind.mixer != Mixer::kSparse) return widths;
  widths.keys = part.kv_heads * model.attention.head_dim;
  widths.values = model.attention.values_are_keys ? 0 : part.kv_heads * model.v_dim();
  return widths;
}

// Rotates pairs of features of q and k, with two multiplications and an addition per value.
LayerOp rope(const Part& part, const QkvWidths& widths) {
  const std::int64_t elements = part.tokens * widths.rotated();
  const Kernel rotation =
      part.elementwise("rope", {.elements = elements, .flops = 3, .kind = ElementwiseKind::kRope});
  LayerOp op{.name = "rope", .region = Region::kTensor};
  op.forward = {rotation};
  op.input_gradient = {rotation};
  op.input = part.size(part.tokens * widths.all());
  op.passed_on = op.input - part.size(elements);
  op.workspace.backward = 2 * part.size(elements);
  return op;
}

// RMS norm of q and k, head by head or over all heads. It keeps both in their previous form.
LayerOp qk_norm(const Part& part, const QkvWidths& widths) {
  const ModelSpec& model = part.model;
  const std::int64_t elements = part.tokens * widths.rotated();
  LayerOp op{.name = "qk_norm", .region = Region::kTensor};
  const std::int64_t scales_of_a_head = (widths.keys > 0 ? 2 : 1) * model.attention.head_dim;
  op.parameters.own = model.attention.qk_norm_whole ? widths.rotated() : scales_of_a_head;
  make_rms_norm(part, elements, op);
  if (model.attention.qk_norm_whole && part.shard.tensor > 1) op.tensor.summed_values_per_token = 2;
  op.input = part.size(part.tokens * widths.all());
  op.passed_on = op.input - part.size(elements);
  return op;
}

void add_norm_and_rope(const Part& part, const QkvWidths& widths, std::vector<LayerOp>& ops) {
  const ModelSpec& model = part.model;
  if (model.attention.qk_norm || model.attention.qk_norm_whole)
    ops.push_back(qk_norm(part, widths));
  if (model.attention.rotary && model.embedding.learned_positions == 0)
    ops.push_back(rope(part, widths));
}

// Queries out of a narrow vector, which crosses into the T region beside the stream.
std::vector<LayerOp> narrow_queries(const Part& part, const QkvWidths& widths) {
  const std::int64_t rank = part.model.attention.query_rank;
  LayerOp down = project_own(
      part, {.name = "query_projection", .inputs = part.hidden(), .outputs = rank, .narrow = true});
  down.input = part.own_stream();  // qkv_projection keeps it
  LayerOp scale{.name = "query_norm", .parameters = {.own = rank}};
  make_rms_norm(part, part.own_tokens * rank, scale);
  LayerOp up = project_gathered(part, {.name = "query_up_projection",
                                       .inputs = rank,
                                       .outputs = widths.queries + widths.gate,
                                       .narrow = true});
  up.tensor.crossing =
      part.tokens * (rank + part.hidden()) * size_of(part.shard.types.communication);
  LayerOp keys =
      project_gathered(part, {.name = "qkv_projection",
                              .inputs = part.hidden(),
                              .outputs = widths.keys + widths.values,
                              .bias = part.model.attention.bias || part.model.attention.qkv_bias,
                              .narrow = true});
  keys.reads = {"attention_norm"};
  keys.tensor.regathers_input = false;  // gathered with the queries' vector
  std::vector<LayerOp> ops = {std::move(down), std::move(scale), std::move(up), std::move(keys)};
  const std::size_t next = ops.size();
  add_norm_and_rope(part, widths, ops);
  if (next < ops.size()) ops[next].reads = {"qkv_projection", "query_up_projection"};
  return ops;
}

std::vector<LayerOp> projections(const Part& part, const BlockKind& kind) {
  const ModelSpec& model = part.model;
  if (model.latent.kv_rank > 0) return latent_projections(part);
  const QkvWidths widths = widths_of(part, kind);
  if (model.attention.query_rank > 0) return narrow_queries(part, widths);
  std::vector<LayerOp> ops;
  const std::int64_t inputs = (kind.mixer == Mixer::kShared ? 2 : 1) * part.hidden();
  ops.push_back(project_gathered(part, {.name = "qkv_projection",
                                        .inputs = inputs,
                                        .outputs = widths.all() + widths.gate,
                                        .bias = model.attention.bias || model.attention.qkv_bias,
                                        .narrow = true}));
  for (const std::int64_t width : {widths.queries + widths.gate, widths.keys, widths.values}) {
    if (width > 0) ops.back().columns.push_back(width);
  }
  if (kind.mixer == Mixer::kShared) {
    ops.back().tensor.crossing = part.tokens * inputs * size_of(part.shard.types.communication);
  }
  if (model.norms.parallel) {
    ops.back().reads = {"norm"};
    // The MLP's input, another norm's output, is gathered with it.
    ops.back().tensor.crossing =
        2 * part.tokens * part.hidden() * size_of(part.shard.types.communication);
  } else if (model.parallel_branches) {
    ops.back().tensor.regathers_input = false;  // the MLP gathers it again
  }
  add_norm_and_rope(part, widths, ops);
  return ops;
}

// Multiplies attention's result by the sigmoid of a gate. It keeps the gate; attention its result.
LayerOp attention_gate(const Part& part) {
  const std::int64_t elements = part.tokens * part.heads * part.model.v_dim();
  const bool is_wide = part.model.attention.gate == AttentionGate::kValue;
  const Bytes gates = is_wide ? part.size(elements) : part.size(part.tokens * part.heads);
  LayerOp op{.name = "attention_gate", .region = Region::kTensor};
  op.forward = {part.elementwise(op.name, {.elements = elements, .flops = 5})};
  op.input_gradient = {part.elementwise(op.name, {.elements = elements, .reads = 2, .flops = 9})};
  op.forward.back().read += gates;
  op.input_gradient.back().read += gates;
  op.input_gradient.back().written += gates;
  op.reads = {"attention",
              part.model.latent.kv_rank > 0 ? OpName("gate_projection") : OpName("qkv_projection")};
  op.input = part.size(elements) + gates;
  op.saved.total = op.saved.inside = gates;
  op.workspace.backward = 2 * (part.size(elements) + gates);
  return op;
}

struct AttentionSizes {
  Bytes inputs;  // q, k and v
  Bytes output;
  std::int64_t scores = 0;  // number of scores: every query with every key, masked or not
};

AttentionSizes sizes(const Part& part, const AttentionShape& shape) {
  return {.inputs = part.size(part.tokens * (shape.heads * shape.qk_dim +
                                             shape.kv_heads * key_and_value_width(shape))),
          .output = part.size(part.tokens * shape.heads * shape.v_dim),
          .scores = shape.sequences * shape.queries * shape.keys * shape.heads};
}

// Returns the bytes of attention's result in NarrowTypes::attention_result_bits, with scales.
Bytes kept_result(const Part& part, std::int64_t values) {
  const NarrowTypes& narrow = part.shard.narrow;
  const std::int64_t scales =
      narrow.scale_block ? (values + *narrow.scale_block - 1) / *narrow.scale_block : 0;
  return Bytes((values * *narrow.attention_result_bits + 7) / 8) +
         scales * size_of(DataType::kFp32);
}

LayerOp fused(const Part& part, const AttentionShape& shape) {
  const DataType type = part.shard.types.activations;
  const auto [inputs, output, scores] = sizes(part, shape);
  LayerOp op{.name = "attention", .region = Region::kTensor};
  const std::int64_t document = part.shard.document_length;
  op.forward = {in_documents(attention_forward("attention", type, shape), document)};
  op.input_gradient = {in_documents(attention_backward("attention", type, shape), document)};
  keep_input(op, inputs);
  op.saved.result = output;
  if (part.shard.narrow.attention_result_bits) {
    const std::int64_t values = part.tokens * shape.heads * shape.v_dim;
    op.saved.result = kept_result(part, values);
    op.again = op.forward;
    op.forward.push_back(rounding("round_result", type, values, output, op.saved.result));
    Kernel widen = part.elementwise("widen_result", {.elements = values, .reads = 0});
    widen.read = op.saved.result;
    widen.use = KernelUse::kWiden;
    op.input_gradient.insert(op.input_gradient.begin(), widen);
  }
  op.saved.inside = log_sum_exp_size(shape);
  op.saved.total += op.saved.result + op.saved.inside;
  op.workspace.backward = inputs + output;
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
  if (part.drops_out()) {
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
  op.saved.result = output;
  op.saved.inside = kept;
  op.saved.total += op.saved.result + op.saved.inside;
  op.workspace.forward = part.size(scores);  // the scores before the softmax
  op.workspace.backward = inputs + output + 2 * part.size(scores);
  return op;
}

// Another layer keeps the keys and values; their gradients are added to those of that layer.
void share_keys(const Part& part, LayerOp& op) {
  const ModelSpec& model = part.model;
  const std::int64_t values =
      part.tokens * part.kv_heads * (model.attention.head_dim + model.v_dim());
  op.saved.total -= part.size(values);
  op.saved.input -= part.size(values);
  op.input_gradient.push_back(
      part.elementwise("add_gradients", {.elements = values, .reads = 2, .flops = 1}));
}

}  // namespace

LayerOp attention(const Part& part, const AttentionShape& shape) {
  LayerOp op = part.shard.kernels.fused_attention ? fused(part, shape) : unfused(part, shape);
  if (part.model.attention.sinks) op.parameters.own = part.heads;
  return op;
}

AttentionShape attention_shape(const Part& part, const BlockKind& kind) {
  const Shard& shard = part.shard;
  const ModelSpec& model = part.model;
  const std::int64_t s = shard.sequence_length;
  if (model.compressed.output_groups > 0) {
    return compressed_shape(part, kind, s / shard.context, s,
                            pairs_in_documents(model, kind, s, shard.document_length) /
                                static_cast<double>(shard.context));
  }
  AttentionShape shape{.sequences = shard.sequences,
                       .heads = part.heads,
                       .kv_heads = part.kv_heads,
                       .queries = s / shard.context,
                       .keys = s,
                       .qk_dim = model.qk_dim(),
                       .v_dim = model.v_dim(),
                       .pairs = pairs_in_documents(model, kind, s, shard.document_length) /
                                static_cast<double>(shard.context)};
  if (kind.mixer == Mixer::kSparse && model.latent.kv_rank > 0) {
    shape.kv_heads = 1;
    shape.qk_dim = model.latent.kv_rank + model.latent.rope_dim;
    shape.v_dim = model.latent.kv_rank;
    shape.values_in_keys = true;
  }
  return shape;
}

namespace {

// Puts the indexer's op of the S region before the T region, the others behind the projections.
void add_indexer(const Part& part, std::vector<LayerOp>& ops) {
  const auto first = std::ranges::find_if(ops, is_tensor);
  ops.insert(first, index_keys(part));
  for (LayerOp& op : choose_tokens(part)) ops.push_back(std::move(op));
}

LayerOp attention_of_kind(const Part& part, const BlockKind& kind) {
  LayerOp op = attention(part, attention_shape(part, kind));
  if (kind.mixer == Mixer::kSparse) {
    gather_choice(part, op);
  } else if (kind.shares) {
    share_keys(part, op);
  } else if (kind.lends && kind.mixer != Mixer::kTwoSided) {
    op.saved.lent = part.size(part.tokens * part.kv_heads *
                              (part.model.attention.head_dim + part.model.v_dim()));
  }
  return op;
}

}  // namespace

std::vector<LayerOp> attention_ops(const Part& part, const BlockKind& kind) {
  assert(kind.attends());
  const ModelSpec& model = part.model;
  if (model.compressed.output_groups > 0) return compressed_attention_ops(part, kind);
  std::vector<LayerOp> ops = projections(part, kind);
  std::vector<OpName> sources = {ops.back().name};
  const bool is_bare = model.attention.query_rank > 0 && sources.front() == "qkv_projection";
  if (is_bare) sources.push_back("query_up_projection");
  if (kind.mixer == Mixer::kSparse && !kind.shares) {
    add_indexer(part, ops);
    sources.push_back("index_scores");
  }
  ops.push_back(attention_of_kind(part, kind));
  if (sources.size() > 1) ops.back().reads = std::move(sources);
  if (model.attention.gate != AttentionGate::kNone) ops.push_back(attention_gate(part));
  ops.push_back(project_partial(part, {.name = "out_projection",
                                       .inputs = part.heads * model.v_dim(),
                                       .outputs = part.hidden(),
                                       .narrow = true,
                                       .keeps_wide = true}));
  // Attention keeps its result before the gate, out_projection what it reads.
  if (model.attention.gate != AttentionGate::kNone) {
    keep_input(ops.back(), part.operand_size(part.tokens * part.heads * model.v_dim()));
  }
  return ops;
}

}  // namespace stepsim
