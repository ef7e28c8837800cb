#include "workload/vision.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>
#include <vector>

#include "workload/mixers/mixer.h"
#include "workload/parts/layer_part.h"
#include "workload/parts/mlp.h"

namespace stepsim {
namespace {

constexpr std::int64_t kColours = 3;

Layer vision_entry(const Part& part, const VisionSpec& vision) {
  const std::int64_t pixels = kColours * vision.frames * vision.patch * vision.patch;
  const std::int64_t values = part.own_tokens * part.hidden();
  LayerOp patches = project_own(
      part, {.name = "patch_projection", .inputs = pixels, .outputs = part.hidden(), .bias = true});
  patches.input_gradient.clear();  // nobody wants that of pixels
  keep_input(patches, part.size(part.own_tokens * pixels));
  LayerOp positions{.name = "patch_positions"};
  positions.forward = {
      part.elementwise(positions.name, {.elements = values, .reads = 2, .flops = 1})};
  positions.input = part.own_stream();
  positions.parameters.own = vision.positions * part.hidden();
  if (vision.positions > 0) {
    positions.weight_gradient = {
        part.elementwise(positions.name, {.elements = values, .writes = 0, .accumulated = values})};
  }
  return {.name = "vision entry", .ops = {std::move(patches), std::move(positions)}};
}

Layer vision_block(const Part& part) {
  Layer layer{.name = "vision block", .ops = mixer_branch(part, kind_of(part.model, 0))};
  std::ranges::move(mlp_branch(part), std::back_inserter(layer.ops));
  return layer;
}

// `part` is of the encoder; `width` is the text's.
std::vector<LayerOp> projector(const Part& part, const VisionSpec& vision, std::int64_t width) {
  const std::int64_t inner = vision.merged() * vision.hidden;
  Part merged = part;
  merged.own_tokens = std::max<std::int64_t>(1, part.own_tokens / vision.merged());
  merged.tokens = merged.own_tokens;
  LayerOp up = project_own(
      merged, {.name = "projector_up_projection", .inputs = inner, .outputs = inner, .bias = true});
  keep_input(up, part.size(merged.own_tokens * inner));
  LayerOp activation =
      mlp_activation(merged, "projector_activation", Region::kSequence, merged.own_tokens, inner);
  LayerOp down = project_own(
      merged,
      {.name = "projector_down_projection", .inputs = inner, .outputs = width, .bias = true});
  keep_input(down, part.size(merged.own_tokens * inner));
  return {norm(part, "projector_norm"), std::move(up), std::move(activation), std::move(down)};
}

}  // namespace

ModelSpec vision_encoder(const VisionSpec& vision) {
  assert(vision.layers > 0);
  ModelSpec encoder{.name = "vision", .layers = vision.layers, .hidden = vision.hidden};
  encoder.attention = {.heads = vision.heads,
                       .kv_heads = vision.heads,
                       .head_dim = vision.hidden / vision.heads,
                       .bias = true,
                       .causal = false};
  encoder.mlp = {.width = vision.intermediate, .gated = false, .bias = true};
  encoder.norms.kind = NormKind::kLayer;
  encoder.embedding.vocabulary = 1;
  return encoder;
}

VisionLayers vision_layers(const ModelSpec& model, const Shard& shard) {
  if (model.vision.layers == 0) return {};
  const ModelSpec encoder = vision_encoder(model.vision);
  const Shard whole{
      .sequences = std::max<std::int64_t>(1, shard.pictures),
      .sequence_length = std::max<std::int64_t>(1, shard.picture_tokens * model.vision.merged()),
      .types = shard.types,
      .kernels = shard.kernels,
      .narrow = shard.narrow};
  const Part part = part_of_model(encoder, whole);
  VisionLayers layers{.entry = vision_entry(part, model.vision),
                      .block = vision_block(part),
                      .blocks = model.vision.layers,
                      .projector = {.name = "vision projector", .ops = {}}};
  for (std::int64_t i = 0; i < model.vision.projectors; ++i) {
    std::ranges::move(projector(part, model.vision, model.hidden),
                      std::back_inserter(layers.projector.ops));
  }
  return layers;
}

Layer frozen(Layer layer) {
  for (LayerOp& op : layer.ops) {
    op.parameters.frozen += op.parameters.own;
    op.parameters.own = 0;
    op.input_gradient.clear();
    op.weight_gradient.clear();
    op.saved = {};
    op.workspace.backward = Bytes(0);
    op.backward_reads_input = op.tensor.regathers_input = false;
  }
  return layer;
}

Layer without_kernels(Layer layer) {
  for (LayerOp& op : layer.ops) {
    const OpParameters parameters = op.parameters;
    op = LayerOp{.name = op.name, .region = op.region, .parameters = parameters};
  }
  return layer;
}

}  // namespace stepsim
