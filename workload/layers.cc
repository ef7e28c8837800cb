#include "workload/layers.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "workload/attention.h"
#include "workload/embedding.h"
#include "workload/experts.h"
#include "workload/head.h"
#include "workload/layer_part.h"
#include "workload/mlp.h"
#include "workload/mlp_stack.h"
#include "workload/prediction.h"

namespace stepsim {
namespace {

// Returns "block" and, if there are several kinds, the special features of this one.
std::string name_of(const BlockKind& kind, const std::vector<BlockKind>& kinds) {
  const bool both_mlps = std::ranges::any_of(
      kinds, [&](const BlockKind& other) { return other.experts != kind.experts; });
  const bool both_attentions =
      std::ranges::any_of(kinds, [&](const BlockKind& other) { return other.local != kind.local; });
  std::string name;
  if (both_attentions) name += kind.local ? "local " : "global ";
  if (both_mlps) name += kind.experts ? "expert " : "dense ";
  return name + "block";
}

Layer block_layer(const Part& part, const BlockKind& kind, std::string name) {
  Layer layer{.name = std::move(name), .ops = attention_branch(part, kind)};
  std::vector<LayerOp> second = kind.experts ? expert_branch(part) : mlp_branch(part);
  std::ranges::move(second, std::back_inserter(layer.ops));
  if (kind.experts) layer.routing = token_routing(part);
  return layer;
}

// Sums a count over the ops of a region, or of all.
std::int64_t sum_of(const std::vector<LayerOp>& ops, std::int64_t LayerOp::*count,
                    std::optional<Region> region = {}) {
  std::int64_t sum = 0;
  for (const LayerOp& op : ops) sum += !region || op.region == *region ? op.*count : 0;
  return sum;
}

}  // namespace

std::string_view name_of(LossKernels kernels) {
  constexpr std::array<std::string_view, kLossKernels> kNames = {"fused", "in_place", "separate"};
  return kNames[static_cast<std::size_t>(kernels)];
}

DataTypes all_of_type(DataType type) {
  return {.weights = type,
          .activations = type,
          .matmul = type,
          .communication = type,
          .dispatch = type,
          .combine = type};
}

std::int64_t Layer::parameters() const {
  return sum_of(ops, &LayerOp::parameters);
}

std::int64_t Layer::parameters(Region region) const {
  return sum_of(ops, &LayerOp::parameters, region);
}

std::int64_t Layer::frozen() const {
  return sum_of(ops, &LayerOp::frozen);
}

std::int64_t Layer::frozen(Region region) const {
  return sum_of(ops, &LayerOp::frozen, region);
}

Bytes Layer::saved() const {
  Bytes sum;
  for (const LayerOp& op : ops) sum += op.saved;
  return sum;
}

std::int64_t unembedding_parameters(const ModelLayers& layers) {
  for (const LayerOp& op : layers.head.ops) {
    if (op.name != "unembedding") continue;
    return op.parameters > 0 ? op.parameters : layers.embedding.ops.front().parameters;
  }
  return 0;
}

ModelLayers build_layers(const ModelSpec& model, const Shard& shard) {
  if (model.kind == ModelKind::kMlpStack) return build_mlp_stack(model, shard);
  const Part part = part_of_model(model, shard);
  ModelLayers layers{
      .embedding = embedding_layer(part),
      .head = head_layer(part),
      .boundary = part.stream(),
      .tensor_boundary = part.tokens * part.hidden() * size_of(shard.types.communication)};
  std::vector<BlockKind> kinds;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const auto found = std::ranges::find(kinds, kind_of(model, layer));
    layers.kind_of_block.push_back(static_cast<std::uint32_t>(found - kinds.begin()));
    if (found == kinds.end()) kinds.push_back(kind_of(model, layer));
  }
  for (const BlockKind& kind : kinds) {
    layers.blocks.push_back(block_layer(part, kind, name_of(kind, kinds)));
  }
  for (std::int64_t module = 0; module < model.prediction_modules; ++module) {
    layers.prediction.push_back({.entry = prediction_entry_layer(part),
                                 .kind_of_block = layers.kind_of_block.back(),
                                 .head = prediction_head_layer(part)});
  }
  return layers;
}

}  // namespace stepsim
