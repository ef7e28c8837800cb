#include "workload/mlp_stack.h"

#include <cassert>

#include "workload/model/mlp_stack_spec.h"
#include "workload/parts/kernels.h"
#include "workload/parts/layer_part.h"

namespace stepsim {
namespace {

LayerOp multiply(OpName name, const DataTypes& types, const MatmulShape& shape) {
  const MatmulTypes product{types.matmul, types.activations};
  const MatmulTypes gradient{types.matmul, types.weights};
  const auto& [batch, tokens, outputs, inputs] = shape;
  LayerOp op{.name = name, .region = Region::kTensor};
  op.forward = {matmul(name, product, shape)};
  op.input_gradient = {matmul(name, product, {.m = tokens, .n = inputs, .k = outputs})};
  op.weight_gradient = {matmul(name, gradient, {.m = inputs, .n = outputs, .k = tokens})};
  op.parameters.own = inputs * outputs;
  op.workspace.backward = batch * tokens * (inputs + outputs) * size_of(types.activations);
  return op;
}

}  // namespace

ModelLayers build_mlp_stack(const ModelSpec& model, const Shard& shard) {
  assert(check_mlp_stack(model).empty());
  assert(model.mlp.width % shard.tensor == 0);
  const std::int64_t tokens = shard.sequences * shard.sequence_length / shard.context;
  const std::int64_t own_tokens = shard.sequence_parallel ? tokens / shard.tensor : tokens;
  const std::int64_t width = model.mlp.width / shard.tensor;
  const DataType type = shard.types.matmul;
  const Bytes sent = size_of(shard.types.communication);
  const std::int64_t ways = shard.tensor_width;  // ways that divide the hidden width

  LayerOp up = multiply("up_projection", shard.types,
                        {.batch = 1, .m = tokens, .n = width * ways, .k = model.hidden / ways});
  keep_input(up, bytes_of(own_tokens * model.hidden, type));
  up.tensor.regathers_input = own_tokens != tokens;
  if (up.tensor.regathers_input) {
    up.workspace.forward = bytes_of(tokens * model.hidden / ways, type);
    up.workspace.backward += bytes_of(tokens * model.hidden / ways, type);
  }
  LayerOp down = multiply("down_projection", shard.types,
                          {.batch = 1, .m = tokens, .n = model.hidden / ways, .k = width * ways});
  if (ways > 1) {
    up.tensor.crossing = tokens * model.hidden / ways * sent;
    up.tensor.width_reduced = down.tensor.width_gathered = tokens * width * ways * sent;
    up.workspace.forward += tokens * width * ways * size_of(shard.types.activations);
    down.workspace.forward = bytes_of(tokens * width * ways, type);
  }
  keep_input(down, bytes_of(tokens * width, type));
  // Tokens may be divided where a layer begins. An op without kernels marks that.
  const LayerOp input{.name = "input", .region = Region::kSequence};
  return {.embedding = Layer{.name = "embedding", .ops = {}},
          .blocks = {{.name = "block", .ops = {input, up, down}}},
          .kind_of_block = std::vector<std::uint32_t>(static_cast<std::size_t>(model.layers), 0),
          .head = Layer{.name = "head", .ops = {}},
          .boundary = tokens * model.hidden * size_of(shard.types.activations),
          .tensor_boundary = tokens * model.hidden * size_of(shard.types.communication)};
}

}  // namespace stepsim
