#include "workload/embedding.h"

namespace stepsim {
namespace {

LayerOp position_embedding(const Part& part) {
  const std::int64_t elements = part.own_tokens * part.hidden();
  LayerOp op{.name = "position_embedding"};
  op.forward = {part.elementwise(op.name, {.elements = elements, .reads = 2, .flops = 1})};
  op.weight_gradient = {
      part.elementwise(op.name, {.elements = elements, .writes = 0, .accumulated = elements})};
  op.backward_workspace = 2 * part.own_stream();
  op.parameters = (part.model.learned_positions + part.model.extra_rows) * part.own_width();
  return op;
}

LayerOp embedding_dropout(const Part& part) {
  const std::int64_t elements = part.own_tokens * part.hidden();
  LayerOp op{.name = "embedding_dropout"};
  op.forward = {part.elementwise(op.name, {.elements = elements, .flops = 1})};
  op.input_gradient = op.forward;
  add_dropout_mask(op, elements);
  op.backward_workspace = 2 * part.own_stream();
  return op;
}

}  // namespace

LayerOp look_up(const Part& part, std::string_view name) {
  const std::int64_t elements = part.tokens * part.hidden();
  const std::int64_t found = elements / part.shard.tensor;  // its rows, on average
  LayerOp op{.name = name, .region = Region::kTensor};
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

Layer embedding_layer(const Part& part) {
  Layer layer{.name = "embedding", .ops = {look_up(part, "embedding")}};
  if (part.model.learned_positions > 0) layer.ops.push_back(position_embedding(part));
  if (part.model.embedding_norm) layer.ops.push_back(norm(part, "embedding_norm"));
  if (part.model.dropout) layer.ops.push_back(embedding_dropout(part));
  return layer;
}

}  // namespace stepsim
