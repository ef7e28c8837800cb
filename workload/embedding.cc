#include "workload/embedding.h"

#include <utility>
#include <vector>

#include "workload/parts/hyper_connection.h"

namespace stepsim {
namespace {

LayerOp position_embedding(const Part& part) {
  const std::int64_t elements = part.own_tokens * part.hidden();
  LayerOp op{.name = "position_embedding"};
  op.forward = {part.elementwise(op.name, {.elements = elements, .reads = 2, .flops = 1})};
  op.weight_gradient = {
      part.elementwise(op.name, {.elements = elements, .writes = 0, .accumulated = elements})};
  op.workspace.backward = 2 * part.own_stream();
  op.parameters.own =
      (part.model.embedding.learned_positions + part.model.embedding.extra_rows) * part.own_width();
  return op;
}

std::int64_t vectors_width(const Part& part) {
  return part.model.layers * part.model.embedding.of_layers;
}

// The table of the layers' vectors is whole on every tensor rank.
LayerOp look_up_vectors(const Part& part) {
  const std::int64_t elements = part.own_tokens * vectors_width(part);
  LayerOp op{.name = "layer_vectors"};
  op.forward = {part.elementwise(op.name, {.elements = elements})};
  op.weight_gradient = {
      part.elementwise(op.name, {.elements = elements, .writes = 0, .accumulated = elements})};
  op.saved.total = Bytes(part.own_tokens * kTokenIdBytes);
  op.input = part.own_stream();
  op.passed_on = op.input;
  op.workspace.backward = part.size(elements);
  op.parameters.own = part.whole_vocabulary() * vectors_width(part);
  return op;
}

// What the embedding gives is projected for all layers, normalised a layer at a time, and added.
std::vector<LayerOp> mix_vectors(const Part& part) {
  const std::int64_t elements = part.own_tokens * vectors_width(part);
  LayerOp project = project_own(part, {.name = "layer_vectors_projection",
                                       .inputs = part.hidden(),
                                       .outputs = vectors_width(part)});
  keep_input(project, part.own_stream());
  LayerOp scale{.name = "layer_vectors_norm",
                .parameters = {.own = part.model.embedding.of_layers}};
  make_rms_norm(part, elements, scale);
  LayerOp add{.name = "layer_vectors_add"};
  add.forward = {part.elementwise(add.name, {.elements = elements, .reads = 2, .flops = 1})};
  add.input = part.size(elements);
  add.reads = {"layer_vectors_norm", "layer_vectors"};
  return {std::move(project), std::move(scale), std::move(add)};
}

LayerOp embedding_dropout(const Part& part) {
  const std::int64_t elements = part.own_tokens * part.hidden();
  LayerOp op{.name = "embedding_dropout"};
  op.forward = {part.elementwise(op.name, {.elements = elements, .flops = 1})};
  op.input_gradient = op.forward;
  add_dropout_mask(op, elements);
  op.workspace.backward = 2 * part.own_stream();
  return op;
}

}  // namespace

LayerOp look_up(const Part& part, OpName name) {
  const std::int64_t elements = part.tokens * part.hidden();
  const std::int64_t found = elements / part.shard.tensor;  // its rows, on average
  LayerOp op{.name = name, .region = Region::kTensor};
  op.forward = {part.elementwise(op.name, {.elements = elements, .reads = 0})};
  op.forward.front().read += part.size(found) + Bytes(part.tokens * kTokenIdBytes);
  op.weight_gradient = {
      part.elementwise(op.name, {.elements = found, .writes = 0, .accumulated = found})};
  op.saved.total = Bytes(part.tokens * kTokenIdBytes);
  op.workspace.forward = part.stream();
  op.workspace.backward = part.stream();
  op.parameters.own = part.vocabulary * part.hidden();
  return op;
}

Layer embedding_layer(const Part& part) {
  Layer layer{.name = "embedding", .ops = {look_up(part, "embedding")}};
  if (part.model.embedding.learned_positions > 0) layer.ops.push_back(position_embedding(part));
  if (part.model.norms.embedding) layer.ops.push_back(norm(part, "embedding_norm"));
  if (part.drops_out()) layer.ops.push_back(embedding_dropout(part));
  if (part.model.hyper.streams > 0) layer.ops.push_back(copy_to_streams(part));
  if (part.model.embedding.of_layers > 0) {
    layer.ops.push_back(look_up_vectors(part));
    for (LayerOp& op : mix_vectors(part)) layer.ops.push_back(std::move(op));
  }
  return layer;
}

std::vector<LayerOp> layer_embedding_branch(const Part& part) {
  const std::int64_t width = part.model.embedding.of_layers;
  const std::int64_t elements = part.own_tokens * width;
  LayerOp down = project_own(
      part,
      {.name = "layer_gate_projection", .inputs = part.hidden(), .outputs = width, .narrow = true});
  keep_input(down, part.operand_size(part.own_tokens * part.hidden()));
  down.input_gradient.push_back(part.elementwise(
      "residual_gradient", {.elements = part.own_tokens * part.hidden(), .reads = 2, .flops = 1}));
  LayerOp gate{.name = "layer_gate"};
  gate.forward = {part.elementwise(gate.name, {.elements = elements, .reads = 2, .flops = 11})};
  gate.input_gradient = {
      part.elementwise(gate.name, {.elements = elements, .reads = 3, .writes = 2, .flops = 21})};
  keep_input(gate, 2 * part.size(elements));
  gate.workspace.backward = 3 * part.size(elements);
  LayerOp up = project_own(
      part,
      {.name = "layer_up_projection", .inputs = width, .outputs = part.hidden(), .narrow = true});
  keep_input(up, part.operand_size(elements));
  LayerOp scale{.name = "layer_post_norm", .parameters = {.own = part.hidden()}};
  make_rms_norm(part, part.own_tokens * part.hidden(), scale);
  return {std::move(down), std::move(gate), std::move(up), std::move(scale),
          residual(part, "layer_residual", false)};
}

}  // namespace stepsim
