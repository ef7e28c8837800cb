#include "workload/experts.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <utility>

#include "workload/mlp.h"

namespace stepsim {
namespace {

struct ExpertPart {
  std::int64_t experts = 0;  // on this chip
  std::int64_t copies = 0;   // that came to them
  std::int64_t width = 0;    // this chip's features of each
};

ExpertPart expert_part(const Part& part) {
  const Shard& shard = part.shard;
  const ExpertSpec& spec = part.model.experts;
  assert(spec.routed % shard.expert == 0 && spec.intermediate % shard.expert_tensor == 0);
  assert(shard.tensor == 1 || shard.sequence_parallel);
  const std::int64_t sent = part.own_tokens * spec.per_token * shard.expert * shard.expert_tensor;
  return {.experts = spec.routed / shard.expert,
          .copies = copies_by_expert_rank(spec, shard.expert,
                                          sent)[static_cast<std::size_t>(shard.expert_rank)],
          .width = spec.intermediate / shard.expert_tensor};
}

// Scores of the routed experts and, of those, the best.
LayerOp router(const Part& part) {
  const ExpertSpec& spec = part.model.experts;
  LayerOp op = project_own(part, {.name = "router",
                                  .inputs = part.hidden(),
                                  .outputs = spec.routed,
                                  .bias = spec.router_bias});
  const std::int64_t scores = part.own_tokens * spec.routed;
  const ElementwiseShape choose{.elements = scores, .flops = 5};
  op.forward.push_back(elementwise("choose_experts", DataType::kFp32, choose));
  op.input_gradient.insert(op.input_gradient.begin(),
                           elementwise("choose_experts", DataType::kFp32, choose));
  constexpr std::int64_t kChoiceBytes = 8;  // an expert's number and its fp32 weight
  op.reads = {"mlp_norm"};
  op.input = part.own_stream();
  if (spec.shared_intermediate == 0) keep_input(op, part.own_stream());
  op.saved_inside =
      scores * size_of(DataType::kFp32) + Bytes(part.own_tokens * spec.per_token * kChoiceBytes);
  op.saved += op.saved_inside;
  return op;
}

// Copies of each token, ordered by where they go; and back, summed up.
LayerOp permute(const Part& part) {
  const std::int64_t copied = part.own_tokens * part.model.experts.per_token * part.hidden();
  LayerOp op{.name = "permute"};
  if (part.shard.types.dispatch == part.shard.types.matmul) {
    add_rounding(part, "round_input", part.own_tokens * part.hidden(), op.forward);
  }
  op.forward.push_back(elementwise(op.name, part.shard.types.dispatch, {.elements = copied}));
  op.input_gradient = {part.elementwise(op.name, {.elements = copied, .writes = 0, .flops = 1})};
  op.input_gradient.front().written = part.own_stream();
  op.reads = {"mlp_norm"};
  op.input = part.own_stream();
  op.forward_workspace = copied * size_of(part.shard.types.dispatch);
  op.backward_workspace = part.size(copied) + part.own_stream();
  return op;
}

LayerOp unpermute(const Part& part) {
  const std::int64_t copies = part.own_tokens * part.model.experts.per_token;
  constexpr std::int64_t kPlaceBytes = 4;  // where each copy belongs
  LayerOp op{.name = "unpermute"};
  op.forward = {
      part.elementwise(op.name, {.elements = copies * part.hidden(), .writes = 0, .flops = 1})};
  op.forward.front().written = part.own_stream();
  op.input_gradient = {part.elementwise(op.name, {.elements = copies * part.hidden(), .reads = 0})};
  op.input_gradient.front().read = part.own_stream();
  op.input = part.size(copies * part.hidden());
  op.saved = op.saved_inside = Bytes(copies * kPlaceBytes);
  op.forward_workspace = part.size(copies * part.hidden());
  op.backward_workspace = op.forward_workspace + part.own_stream();
  return op;
}

struct ExpertProjection {
  std::string_view name;
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  bool arrives_narrow = false;  // its input came in the operands' type already
};

LayerOp project_grouped(const Part& part, const ExpertPart& mine,
                        const ExpertProjection& projection) {
  const auto& [name, inputs, outputs, arrives_narrow] = projection;
  const DataTypes& types = part.shard.types;
  const MatmulTypes product{types.matmul, types.activations};
  const MatmulTypes accumulated{types.matmul, types.gradients};
  const std::int64_t rows = mine.copies;
  LayerOp op{.name = name, .region = Region::kExpert};
  if (!arrives_narrow) add_rounding(part, "round_input", rows * inputs, op.forward);
  add_gradient_rounding(part, rows * outputs, op.input_gradient);
  op.forward.push_back(grouped_matmul(
      name, product, {.groups = mine.experts, .rows = rows, .n = outputs, .k = inputs}));
  op.input_gradient.push_back(grouped_matmul(
      name, product, {.groups = mine.experts, .rows = rows, .n = inputs, .k = outputs}));
  add_turning(part, rows * inputs, op.weight_gradient);
  op.weight_gradient.push_back(accumulating_grouped_matmul(
      name, accumulated, {.groups = mine.experts, .rows = rows, .n = outputs, .k = inputs}));
  keep_input(op, part.operand_size(rows * inputs));
  op.backward_workspace = part.size(rows * (inputs + outputs));
  op.parameters = mine.experts * inputs * outputs;
  if (part.model.mlp_bias) {
    const std::int64_t biases = mine.experts * outputs;
    op.forward.back().read += part.size(biases);
    op.weight_gradient.push_back(part.elementwise(
        "bias_gradient",
        {.elements = rows * outputs, .writes = 0, .flops = 1, .accumulated = biases}));
    op.parameters += biases;
  }
  return op;
}

// A weight for each token, from the same input, times the shared experts' result, which it keeps.
LayerOp shared_gate(const Part& part) {
  LayerOp op = project_own(part, {.name = "shared_gate", .inputs = part.hidden(), .outputs = 1});
  const std::int64_t values = part.own_tokens * part.hidden();
  op.forward.push_back(part.elementwise("weigh_shared", {.elements = values, .flops = 1}));
  op.input_gradient.insert(
      op.input_gradient.begin(),
      part.elementwise("weigh_shared", {.elements = values, .reads = 2, .flops = 2}));
  op.reads = {"shared_down_projection", "mlp_norm"};
  keep_input(op, part.own_stream());
  return op;
}

void add_shared_experts(const Part& part, std::vector<LayerOp>& ops) {
  const std::int64_t shared = part.model.experts.shared_intermediate;
  if (shared == 0) return;
  assert(shared % part.shard.tensor == 0);
  const std::int64_t width = shared / part.shard.tensor;
  ops.push_back(project_gathered(part, {.name = "shared_gate_up_projection",
                                        .inputs = part.hidden(),
                                        .outputs = part.mlp_inputs() * width,
                                        .bias = part.model.mlp_bias,
                                        .narrow = true}));
  ops.push_back(mlp_activation(part, "shared_activation", Region::kTensor, part.tokens, width));
  LayerOp down = project_partial(part, {.name = "shared_down_projection",
                                        .inputs = width,
                                        .outputs = part.hidden(),
                                        .narrow = true});
  keep_input(down, part.operand_size(part.tokens * width));
  if (part.model.mlp_bias) down.parameters += part.hidden();
  ops.push_back(std::move(down));
  if (part.model.experts.shared_gate) ops.push_back(shared_gate(part));
}

}  // namespace

std::vector<std::int64_t> copies_by_expert_rank(const ExpertSpec& experts, std::int64_t ranks,
                                                std::int64_t copies) {
  assert(ranks >= 1 && experts.routed % ranks == 0);
  const auto routed = static_cast<std::size_t>(experts.routed);
  const std::vector<double> even(experts.load.empty() ? routed : 0, 1.0);
  const std::vector<double>& load = experts.load.empty() ? even : experts.load;
  const double sum = std::accumulate(load.begin(), load.end(), 0.0);
  const auto all = static_cast<double>(copies);
  const double capacity =
      experts.capacity_factor == 0
          ? all
          : std::ceil(experts.capacity_factor * all / static_cast<double>(routed));
  std::vector<std::int64_t> result;
  const std::size_t of_a_rank = routed / static_cast<std::size_t>(ranks);
  // Rounded where the running sum is, so that nothing is lost between ranks.
  double running = 0;
  std::int64_t given = 0;
  for (std::size_t expert = 0; expert < routed; ++expert) {
    running += std::min(load[expert] / sum * all, capacity);
    if ((expert + 1) % of_a_rank != 0) continue;
    const auto until = static_cast<std::int64_t>(std::llround(running));
    result.push_back(until - given);
    given = until;
  }
  return result;
}

TokenRouting token_routing(const Part& part) {
  const DataTypes& types = part.shard.types;
  return {.tokens = part.own_tokens,
          .copies = part.model.experts.per_token,
          .dispatched = part.scaled_size(part.hidden(), types.dispatch),
          .combined = part.scaled_size(part.hidden(), types.combine)};
}

std::vector<LayerOp> expert_branch(const Part& part) {
  const ExpertPart mine = expert_part(part);
  const DataTypes& types = part.shard.types;
  const bool narrow = types.dispatch == types.matmul;
  std::vector<LayerOp> ops;
  ops.push_back(branch_norm(part, "mlp_norm"));
  add_shared_experts(part, ops);
  ops.push_back(router(part));
  ops.push_back(permute(part));
  ops.push_back(project_grouped(part, mine,
                                {.name = "expert_gate_up_projection",
                                 .inputs = part.hidden(),
                                 .outputs = part.mlp_inputs() * mine.width,
                                 .arrives_narrow = narrow}));
  ops.push_back(
      mlp_activation(part, "expert_activation", Region::kExpert, mine.copies, mine.width));
  ops.push_back(project_grouped(
      part, mine,
      {.name = "expert_down_projection", .inputs = mine.width, .outputs = part.hidden()}));
  ops.push_back(unpermute(part));
  if (part.model.post_norms) ops.push_back(norm(part, "mlp_post_norm"));
  ops.push_back(residual(part, "mlp_residual", false));
  return ops;
}

}  // namespace stepsim
