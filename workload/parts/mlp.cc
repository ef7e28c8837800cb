#include "workload/parts/mlp.h"

#include <optional>
#include <utility>

#include "workload/parts/hyper_connection.h"

namespace stepsim {

LayerOp mlp_activation(const Part& part, OpName name, Region region, std::int64_t rows,
                       std::int64_t width) {
  const bool gated = part.model.mlp.gated;
  const std::int64_t elements = rows * width;
  const std::int64_t inputs = part.mlp_inputs();
  LayerOp op{.name = name, .region = region};
  op.forward = {
      part.elementwise(name, {.elements = elements, .reads = inputs, .flops = gated ? 6 : 10})};
  op.input_gradient = {part.elementwise(
      name,
      {.elements = elements, .reads = inputs + 1, .writes = inputs, .flops = gated ? 12 : 20})};
  const DataTypes& types = part.shard.types;
  Bytes kept = part.size(elements * inputs);
  const std::optional<DataType> kept_in = part.shard.narrow.activation_input_type;
  if (kept_in && size_of(*kept_in) < size_of(types.activations)) {
    // The narrow form is written in addition, and read instead of the wide one.
    const Bytes narrow = part.scaled_size(elements * inputs, *kept_in);
    op.again = op.forward;
    if (part.shard.kernels.fused_elementwise) {
      op.forward.front().written += narrow;
      op.again.front().read += narrow - kept;
      op.input_gradient.front().read += narrow - kept;
    } else {
      // The wide form is made again once, for its forward and its backward.
      op.forward.push_back(
          rounding("round_input", types.activations, elements * inputs, kept, narrow));
      op.forward.back().use = KernelUse::kRoundInput;
      Kernel widen = part.elementwise("widen_input", {.elements = elements * inputs, .reads = 0});
      widen.read = narrow;
      widen.use = KernelUse::kWiden;
      op.input_gradient.insert(op.input_gradient.begin(), widen);
    }
    kept = narrow;
  }
  keep_input(op, kept);
  op.workspace.backward = part.size(elements * (inputs + 1));
  return op;
}

std::vector<LayerOp> mlp_branch(const Part& part) {
  const ModelSpec& model = part.model;
  std::vector<LayerOp> ops;
  if (!model.parallel_branches) open_branch(part, "mlp_mapping", "mlp_norm", ops);
  ops.push_back(project_gathered(
      part, {.name = model.mlp.gated ? OpName("gate_up_projection") : OpName("up_projection"),
             .inputs = part.hidden(),
             .outputs = part.mlp_inputs() * part.intermediate,
             .bias = model.mlp.bias,
             .narrow = true}));
  if (model.mlp.gated) ops.back().columns = {part.intermediate, part.intermediate};
  if (model.norms.parallel) {
    ops.back().reads = {"mlp_norm"};
    ops.back().tensor.regathers_input = false;  // attention gathers both inputs
  } else if (model.parallel_branches) {
    share_input(part, "norm", ops.back());  // qkv_projection keeps it
  }
  ops.push_back(
      mlp_activation(part, "mlp_activation", Region::kTensor, part.tokens, part.intermediate));
  LayerOp down = project_partial(part, {.name = "down_projection",
                                        .inputs = part.intermediate,
                                        .outputs = part.hidden(),
                                        .narrow = true});
  keep_input(down, part.operand_size(part.tokens * part.intermediate));
  if (model.parallel_branches) share_result(part, down);
  ops.push_back(std::move(down));
  add_post_norm(part, "mlp_post_norm", ops);
  close_branch(part, "mlp_residual",
               model.mlp.bias || (model.parallel_branches && model.attention.bias), ops);
  if (model.parallel_branches && model.mlp.bias && model.attention.bias) {
    ops.back().parameters.own += part.own_width();  // one bias for each branch
  }
  return ops;
}

}  // namespace stepsim
