#include "workload/parts/layer_part.h"

#include <algorithm>
#include <cassert>

namespace stepsim {
namespace {

DataType operand_type(const Part& part, const Projection& projection) {
  return projection.narrow ? part.shard.types.matmul : part.shard.types.activations;
}

// Returns whether all values of an operand share a scale that its own largest value decides.
bool finds_scale(const Part& part) {
  return part.shard.narrow.current_scaling && !part.scales_rows();
}

// Rounds the weights again for each pass that multiplies with them.
void add_weight_rounding(const Part& part, std::int64_t weights, LayerOp& op) {
  if (!part.shard.narrow.round_weights) return;
  add_rounding(part, KernelUse::kRoundWeight, weights, op.forward);
  add_rounding(part, KernelUse::kRoundWeight, weights, op.input_gradient);
}

void add_bias(const Part& part, std::int64_t tokens, std::int64_t outputs, LayerOp& op) {
  op.forward.back().read += part.size(outputs);
  op.weight_gradient.push_back(part.elementwise(
      "bias_gradient",
      {.elements = tokens * outputs, .writes = 0, .flops = 1, .accumulated = outputs}));
  op.parameters.own += outputs;
}

// Tokens whose input, and whose result's gradient, this chip rounds.
struct RoundedTokens {
  std::int64_t input = 0;
  std::int64_t gradient = 0;
};

// Multiplies `tokens` rows with the matrix, and makes both gradients.
LayerOp multiply(const Part& part, const Projection& projection, std::int64_t tokens,
                 const RoundedTokens& rounded) {
  const auto& [name, inputs, outputs, bias, narrow, flat, keeps_wide] = projection;
  const DataTypes& types = part.shard.types;
  const MatmulTypes product{operand_type(part, projection), types.activations};
  const MatmulTypes accumulated{product.operands, types.gradients};
  LayerOp op{.name = name, .region = Region::kTensor};
  // With one scale, what was gathered is transposed; blocks of rows have other scales along the
  // tokens, so own tokens are rounded that way too, and gathered.
  const bool by_rows = part.scales_rows();
  const bool turns_gathered = !by_rows && rounded.gradient != tokens;
  if (narrow) {
    add_rounding(part, KernelUse::kRoundInput, rounded.input * inputs, op.forward);
    if (turns_gathered) {
      add_rounding(part, KernelUse::kRoundGradient, rounded.gradient * outputs, op.input_gradient);
    } else {
      add_gradient_rounding(part, rounded.gradient * outputs, op);
    }
    add_weight_rounding(part, inputs * outputs, op);
    add_transpose(part, inputs * outputs, op);
  }
  op.forward.push_back(matmul(name, product, {.m = tokens, .n = outputs, .k = inputs}));
  op.input_gradient.push_back(matmul(name, product, {.m = tokens, .n = inputs, .k = outputs}));
  if (narrow) {
    add_turning(part, "turn_input", (by_rows ? rounded.input : tokens) * inputs,
                keeps_wide || !part.shard.kernels.fused_elementwise, op);
    if (turns_gathered) add_turning(part, "turn_gradient", tokens * outputs, false, op);
  }
  op.weight_gradient.push_back(
      accumulating_matmul(name, accumulated, {.m = outputs, .n = inputs, .k = tokens}));
  op.parameters.own = inputs * outputs;
  op.input = part.scaled_size(tokens * inputs, product.operands);
  op.backward_reads_input = true;
  op.workspace.backward = part.size(tokens * (inputs + outputs));
  if (bias) add_bias(part, tokens, outputs, op);
  return op;
}

}  // namespace

Part part_of_model(const ModelSpec& model, const Shard& shard) {
  assert(shard.sequences >= 1 && shard.sequence_length >= 1);
  assert(shard.tensor >= 1 && shard.context >= 1 && shard.sequence_length % shard.context == 0);
  assert(model.attention.heads % shard.tensor == 0 && model.mlp.width % shard.tensor == 0);
  assert(model.attention.kv_heads % shard.tensor == 0 ||
         shard.tensor % model.attention.kv_heads == 0);
  const std::int64_t tokens = shard.sequences * (shard.sequence_length / shard.context);
  const std::int64_t token_parts = shard.sequence_parallel ? shard.tensor : 1;
  assert(tokens % token_parts == 0);
  return {.model = model,
          .shard = shard,
          .tokens = tokens,
          .own_tokens = tokens / token_parts,
          .heads = model.attention.heads / shard.tensor,
          .kv_heads = std::max<std::int64_t>(1, model.attention.kv_heads / shard.tensor),
          .intermediate = model.mlp.width / shard.tensor,
          .vocabulary =
              (shard.habits.padded(model.embedding.vocabulary, shard.tensor) + shard.tensor - 1) /
              shard.tensor};
}

void keep_input(LayerOp& op, Bytes input) {
  op.input = op.saved.input = input;
  op.saved.total += input;
  op.backward_reads_input = true;
}

void add_rounding(const Part& part, KernelUse use, std::int64_t values,
                  std::vector<Kernel>& kernels) {
  if (!part.narrows()) return;
  if (finds_scale(part)) {
    kernels.push_back(
        part.elementwise("find_scale", {.elements = values, .writes = 0, .flops = 1}));
    kernels.back().use = KernelUse::kFindScale;
  }
  const char* const name = use == KernelUse::kRoundInput    ? "round_input"
                           : use == KernelUse::kRoundWeight ? "round_weight"
                                                            : "round_gradient";
  kernels.push_back(rounding(name, part.shard.types.activations, values, part.size(values),
                             part.operand_size(values)));
  kernels.back().use = use;
}

void add_gradient_rounding(const Part& part, std::int64_t values, LayerOp& op) {
  if (!part.narrows()) return;
  add_rounding(part, KernelUse::kRoundGradient, values, op.input_gradient);
  if (!part.turns()) return;
  if (part.shard.kernels.fused_elementwise) {
    op.input_gradient.back().written += part.operand_size(values);
  } else {
    add_turning(part, "turn_gradient", values, true, op);
  }
}

void add_turning(const Part& part, std::string_view name, std::int64_t values, bool wide,
                 LayerOp& op) {
  const DataTypes& types = part.shard.types;
  if (!part.narrows() || !part.turns()) return;
  const Bytes narrow = part.operand_size(values);
  wide = wide && part.scales_rows();  // with one scale the narrow values are moved as they are
  op.weight_gradient.push_back(rounding(name, wide ? types.activations : types.matmul, values,
                                        wide ? part.size(values) : narrow, narrow));
}

void add_transpose(const Part& part, std::int64_t weights, LayerOp& op) {
  if (!part.narrows() || !part.shard.narrow.transpose_weights) return;
  op.input_gradient.push_back(
      elementwise("transpose_weight", part.shard.types.matmul, {.elements = weights}));
}

LayerOp project(const Part& part, const Projection& projection) {
  return multiply(part, projection, part.tokens, {part.tokens, part.tokens});
}

namespace {

Bytes sent_size(const Part& part, std::int64_t values) {
  return values * size_of(part.shard.types.communication);
}

// [tokens, part of the width] @ [part of the width, the features of all ranks that divide it] gives
// partial sums over those ranks. Each of them gets its own features.
LayerOp project_from_width(const Part& part, const Projection& projection) {
  const std::int64_t ways = part.shard.tensor_width;
  Projection wide = projection;
  wide.inputs /= ways;
  wide.outputs *= ways;
  wide.bias = false;
  LayerOp op = project(part, wide);
  if (projection.bias) add_bias(part, part.tokens, projection.outputs, op);
  op.tensor.crossing = sent_size(part, part.tokens * wide.inputs);
  op.tensor.width_reduced = sent_size(part, part.tokens * wide.outputs);
  op.workspace.forward = part.size(part.tokens * (wide.inputs + wide.outputs));
  return op;
}

// The mirror image: the features of all ranks that divide the width are gathered, and multiplied to
// a part of the width.
LayerOp project_to_width(const Part& part, const Projection& projection) {
  const std::int64_t ways = part.shard.tensor_width;
  Projection wide = projection;
  wide.inputs *= ways;
  wide.outputs /= ways;
  LayerOp op = project(part, wide);
  op.input = part.size(part.tokens * projection.inputs);
  op.tensor.width_gathered = sent_size(part, part.tokens * wide.inputs);
  op.workspace.forward = part.size(part.tokens * (wide.inputs + wide.outputs));
  return op;
}

bool gathers_narrow(const Part& part, const Projection& projection) {
  return projection.narrow && part.narrows() && part.gathers() && part.shard.narrow.gather_narrow;
}

}  // namespace

LayerOp project_gathered(const Part& part, const Projection& projection) {
  if (part.divides_width() && !projection.flat) {
    LayerOp op = project_from_width(part, projection);
    keep_input(op, bytes_of(part.own_tokens * projection.inputs, operand_type(part, projection)));
    op.tensor.regathers_input = true;
    op.workspace.backward += part.size(part.tokens * projection.inputs / part.shard.tensor_width);
    return op;
  }
  const bool narrow = gathers_narrow(part, projection);
  LayerOp op = multiply(part, projection, part.tokens,
                        {narrow ? part.own_tokens : part.tokens, part.tokens});
  if (narrow) op.tensor.input_gathered_as = part.shard.types.matmul;
  keep_input(op,
             part.scaled_size(part.own_tokens * projection.inputs, operand_type(part, projection)));
  op.tensor.regathers_input = part.gathers();
  if (part.gathers()) {
    const std::int64_t values = part.tokens * projection.inputs;
    op.workspace.forward = narrow ? part.operand_size(values) : part.size(values);
    op.workspace.backward += op.workspace.forward;
  }
  return op;
}

LayerOp project_partial(const Part& part, const Projection& projection) {
  if (part.divides_width()) return project_to_width(part, projection);
  const bool narrow = gathers_narrow(part, projection);
  LayerOp op = multiply(part, projection, part.tokens,
                        {part.tokens, narrow ? part.own_tokens : part.tokens});
  if (narrow) op.tensor.gradient_gathered_as = part.shard.types.matmul;
  if (part.shard.tensor > 1) op.workspace.forward = part.size(part.tokens * projection.outputs);
  return op;
}

LayerOp project_own(const Part& part, const Projection& projection) {
  LayerOp op = multiply(part, projection, part.own_tokens, {part.own_tokens, part.own_tokens});
  op.region = Region::kSequence;
  return op;
}

void make_rms_norm(const Part& part, std::int64_t elements, LayerOp& op) {
  op.forward = {part.elementwise(
      op.name, {.elements = elements, .flops = 4, .kind = ElementwiseKind::kNorm})};
  op.input_gradient = {part.elementwise(op.name, {.elements = elements,
                                                  .reads = 2,
                                                  .flops = 9,
                                                  .accumulated = op.parameters.own,
                                                  .kind = ElementwiseKind::kNorm})};
  keep_input(op, part.size(elements));
  op.workspace.backward = 2 * part.size(elements);
}

LayerOp norm(const Part& part, OpName name) {
  const bool layer_norm = part.model.norms.kind != NormKind::kRms;
  const std::int64_t elements = part.own_tokens * part.hidden();
  LayerOp op{.name = name};
  // Forward: sum of squares, then division by the deviation and multiplication by the scale. Layer
  // norm also has mean and shift.
  op.forward = {part.elementwise(
      name, {.elements = elements, .flops = layer_norm ? 7 : 4, .kind = ElementwiseKind::kNorm})};
  op.forward.front().read += part.size(part.norm_parameters());
  op.input_gradient = {part.elementwise(name, {.elements = elements,
                                               .reads = 2,
                                               .flops = layer_norm ? 13 : 9,
                                               .accumulated = part.norm_parameters(),
                                               .kind = ElementwiseKind::kNorm})};
  keep_input(op, part.own_stream());
  op.workspace.backward = 2 * part.own_stream();
  op.parameters.own = part.norm_parameters();
  if (part.divides_width()) op.tensor.summed_values_per_token = layer_norm ? 2 : 1;
  return op;
}

LayerOp branch_norm(const Part& part, OpName name) {
  LayerOp op = part.model.norms.pre ? norm(part, name) : LayerOp{.name = name};
  op.input_gradient.push_back(part.elementwise(
      "residual_gradient", {.elements = part.own_tokens * part.hidden(), .reads = 2, .flops = 1}));
  return op;
}

void add_post_norm(const Part& part, OpName name, std::vector<LayerOp>& ops) {
  if (part.model.norms.post) ops.push_back(norm(part, name));
}

void share_input(const Part& part, OpName source, LayerOp& op) {
  op.saved.total -= op.saved.input;
  op.saved.input = Bytes(0);
  op.reads = {source};
  op.input_gradient.push_back(part.elementwise(
      "branch_gradient", {.elements = part.tokens * part.hidden(), .reads = 2, .flops = 1}));
}

void share_result(const Part& part, LayerOp& op) {
  op.forward.back().read += part.stream();
}

void add_dropout_mask(LayerOp& op, std::int64_t values) {
  op.forward.back().written += Bytes(values);
  op.input_gradient.back().read += Bytes(values);
  op.saved.total += Bytes(values);
}

LayerOp residual(const Part& part, OpName name, bool bias) {
  const std::int64_t elements = part.own_tokens * part.hidden();
  LayerOp op{.name = name};
  op.forward = {part.elementwise(name, {.elements = elements, .reads = 2, .flops = bias ? 2 : 1})};
  op.input = part.own_stream();
  op.workspace.backward = 2 * part.own_stream();
  if (bias) {
    op.forward.front().read += part.size(part.own_width());
    op.input_gradient = {part.elementwise(
        "bias_gradient",
        {.elements = elements, .writes = 0, .flops = 1, .accumulated = part.own_width()})};
    op.parameters.own = part.own_width();
  }
  if (part.drops_out()) {
    op.input_gradient.push_back(part.elementwise("dropout", {.elements = elements, .flops = 1}));
    add_dropout_mask(op, elements);
  }
  return op;
}

}  // namespace stepsim
