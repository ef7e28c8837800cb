#include "workload/parts/hyper_connection.h"

#include <cassert>

namespace stepsim {
namespace {

std::int64_t streams(const Part& part) {
  return part.model.residual_streams();
}

std::int64_t own_values(const Part& part) {
  return part.own_tokens * part.hidden();
}

// A matrix that reads all streams of a token and makes `weights` numbers, and the sum of streams by
// n of them. Constants: one for each number, and `scales`.
LayerOp weigh(const Part& part, OpName name, std::int64_t weights, std::int64_t scales) {
  const std::int64_t n = streams(part), width = n * part.hidden();
  const DataTypes& types = part.shard.types;
  LayerOp op{.name = name};
  op.forward = {matmul(name, {types.activations, DataType::kFp32},
                       {.m = part.own_tokens, .n = weights, .k = width}),
                part.elementwise(name, {.elements = own_values(part), .reads = n, .flops = 4 * n})};
  // Scaling a row or a column of n x n takes n sums and n quotients.
  op.forward.back().flops += Flops(static_cast<double>(
      part.own_tokens * part.model.hyper.sinkhorn_iterations * 2 * n * n * (weights > n ? 2 : 0)));
  // The streams' gradients of the matrix, of the sum and of the residual are added, in two passes.
  op.input_gradient = {
      matmul(name, {types.activations, types.activations},
             {.m = part.own_tokens, .n = width, .k = weights}),
      part.elementwise(
          name,
          {.elements = own_values(part), .reads = 5 * n + 1, .writes = 3 * n, .flops = 6 * n})};
  op.weight_gradient = {accumulating_matmul(name, {types.activations, types.gradients},
                                            {.m = weights, .n = width, .k = part.own_tokens})};
  op.parameters.own = weights * width + weights + scales;
  keep_input(op, n * part.own_stream());
  op.workspace.backward = 2 * n * part.own_stream() + part.own_stream();
  return op;
}

LayerOp mix(const Part& part, OpName name) {
  const std::int64_t n = streams(part), values = own_values(part);
  LayerOp op{.name = name};
  op.forward = {part.elementwise(
      name, {.elements = values, .reads = n + 1, .writes = n, .flops = 2 * n * (n + 1)})};
  op.input_gradient = {part.elementwise(
      name, {.elements = values, .reads = 2 * n + 1, .writes = n + 1, .flops = 4 * n * (n + 1)})};
  keep_input(op, part.own_stream());
  op.workspace.backward = (2 * n + 1) * part.own_stream();
  return op;
}

}  // namespace

void open_branch(const Part& part, OpName mapping, OpName name, std::vector<LayerOp>& ops) {
  if (part.model.hyper.streams == 0) {
    ops.push_back(branch_norm(part, name));
    return;
  }
  const std::int64_t n = streams(part);
  ops.push_back(weigh(part, mapping, n * (n + 2), 3));
  ops.push_back(norm(part, name));
}

void close_branch(const Part& part, OpName name, bool bias, std::vector<LayerOp>& ops) {
  if (part.model.hyper.streams == 0) {
    ops.push_back(residual(part, name, bias));
    return;
  }
  ops.push_back(mix(part, name));
  if (bias) ops.back().parameters.own = part.own_width();
}

LayerOp copy_to_streams(const Part& part) {
  const std::int64_t n = streams(part);
  LayerOp op{.name = "copy_to_streams"};
  op.forward = {part.elementwise(op.name, {.elements = own_values(part), .writes = n})};
  op.input_gradient = {
      part.elementwise(op.name, {.elements = own_values(part), .reads = n, .flops = n})};
  op.input = part.own_stream();
  op.workspace.backward = (n + 1) * part.own_stream();
  return op;
}

LayerOp sum_of_streams(const Part& part) {
  return weigh(part, "head_mapping", streams(part), 1);
}

}  // namespace stepsim
